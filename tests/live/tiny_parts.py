"""A rule, uplinks and a strategy that need what is new in tasks. Client processes import this module: keep it light."""

from importlib import import_module

import numpy as np

from asyncfed.core.record import Config, Record
from asyncfed.core.types import Cancel, Merge, Train, Wake, Work
from asyncfed.kernels.noise_normals import noise_normals
from asyncfed.registry import register
from asyncfed.rules.protocol import Rule

import_module("asyncfed.strategies")  # declares what a strategy is


@register("rule")
class Corrected(Rule, Config, tag_field="kind", tag="tiny_corrected"):
    """Like SCAFFOLD, damped: a part of c - c_i goes down, and c_i becomes what the client's change says."""

    def init(self, params, num_clients):
        return {"rows": np.zeros((num_clients, params.size), params.dtype)}

    def send(self, memory, client):
        return {"correction": 0.1 * (memory["rows"].mean(axis=0) - memory["rows"][client])}

    def measure(self, memory, params, arrival, probe):
        return {"length": float(np.linalg.norm(arrival.change))}

    def step(self, memory, params, arrivals, merge, key):
        for arrival in arrivals:
            rate = arrival.steps * arrival.work.learning_rate
            memory["rows"][arrival.client] = -arrival.change / rate - arrival.sent["correction"]
            params = params + arrival.weight * arrival.change
        return params, memory, {"arrivals": float(len(arrivals))}


@register("rule")
class Shaken(Rule, Config, tag_field="kind", tag="tiny_shaken"):
    """A little noise with every merge."""

    draws_noise = True

    def step(self, memory, params, arrivals, merge, key):
        for arrival in arrivals:
            params = params + arrival.weight * arrival.change
        return params + 1e-3 * np.random.default_rng(key).normal(size=params.size), memory, {}


@register("uplink")
class SendIf(Config, tag_field="kind", tag="tiny_send_if"):
    """Sends nothing when it draws less than `skip`; what is sent has a size that is known only then."""

    skip: float = 0.5
    remembers = False

    def init(self, num_params, dtype):
        return {}

    def size(self, num_params, itemsize):
        return None

    def encode(self, memory, change, key):
        draw = np.random.default_rng(key)
        if draw.random() < self.skip:
            return None, memory
        indices = np.sort(np.argsort(np.abs(change))[-draw.integers(1, change.size + 1) :]).astype(np.uint32)
        return {"indices": indices, "values": change[indices]}, memory

    def decode(self, message, num_params, dtype):
        change = np.zeros(num_params, dtype)
        change[message["indices"]] = message["values"]
        return change


@register("uplink")
class Blurred(Config, tag_field="kind", tag="tiny_blurred"):
    """The client adds a little noise itself."""

    remembers = False
    draws_noise = True

    def init(self, num_params, dtype):
        return {}

    def size(self, num_params, itemsize):
        return num_params * itemsize

    def encode(self, memory, change, key):
        noise = 1e-3 * noise_normals(key, change.size)
        return {"change": change + noise.astype(change.dtype)}, memory

    def decode(self, message, num_params, dtype):
        return message["change"]


class Waiting(Record):
    """How often the strategy was woken up."""

    wakes: int = 0


@register("strategy")
class Impatient(Config, tag_field="kind", tag="tiny_impatient"):
    """Keeps two at work, and every `seconds` gives the oldest ticket up for a new one of the same client."""

    seconds: float = 3.0
    work: Work = Work(epochs=1, batch_size=4, learning_rate=0.01)
    state_type = Waiting

    def check(self, num_clients):
        pass

    def start(self, view):
        return Waiting(), [Train(0, self.work), Train(1, self.work), Wake(self.seconds, 7)]

    def on_update(self, state, update, view):
        merge = Merge((update.report.ticket,), (0.5,), ends_round=True)
        return state, [merge, Train(update.report.client, self.work)]

    def on_lost(self, state, dispatch, view):
        return state, [Train(dispatch.client, self.work)] if dispatch.client in view.clients else []

    def on_join(self, state, client, view):
        return state, [] if view.in_flight else [Train(client, self.work)]

    def on_leave(self, state, client, view):
        return state, []

    def on_wake(self, state, number, now, view):
        actions = [Wake(self.seconds, number)]
        for ticket, dispatch in view.outstanding.items():
            actions += [Cancel(ticket, "too slow"), Train(dispatch.client, self.work)]
            break
        return Waiting(state.wakes + 1), actions
