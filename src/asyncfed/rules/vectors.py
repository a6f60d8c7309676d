"""The vectors of a run: the model, what tickets start from, the trained models that wait, and the rules' memories.

The server decides in numbers; this carries the decisions out. It neither trains nor keeps time, so the simulator, a
replay and a live engine all use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.errors import StrategyError, did_you_mean
from asyncfed.core.record import UNSET
from asyncfed.core.types import Combine, Dispatch, Merge, Uplink
from asyncfed.kernels.recycled_memory import LARGE, empty_like, renew
from asyncfed.rules.frozen_rows import FrozenRows
from asyncfed.rules.latest_average import LatestAverage
from asyncfed.rules.protocol import Arrays, Combiner
from asyncfed.uplinks.chain import apply_difference, init_mirror, message_size
from asyncfed.uplinks.client_memory import ClientMemory

KEPT, NEW = "client_memory/", "new_memory/"
"""How the names of arrays in a checkpoint begin: what clients remember, and what they will once it is accepted."""

MIRROR, NEW_MIRROR = "mirror/", "new_mirror/"
"""The same, of what the server keeps of it."""

DIFFERENCE = "difference/"
"""How the names of arrays begin that go down with a ticket in place of the model."""

REFERENCE = "downlink/start"
"""What a mirror calls the model that the client started a ticket from: what the next difference is from."""

COMBINERS: dict[str, Combiner] = {rule.name: rule for rule in [LatestAverage()]}


class Vectors:
    """Whoever holds a version of the model, `params`, keeps it: a merge changes it in place only if nobody does.

    That is known from Python's own references (`kernels/recycled_memory.py`), and asked for large models. The array is
    another one even then, so that a version is the same if, and only if, its array is the same.

    `starts`, `trained` and `client_of` are by ticket: the model that it starts from, the model that it arrived at, and
    whose it is. `own` holds each client's own model where the work wants it (`start = "own"`). `memories` is what each
    client remembers, and `new_memories`, by ticket, what it will remember if its update is accepted; `mirrors` and
    `new_mirrors` are what the server keeps of that, where an uplink is mirrored. `skipped` are
    tickets that are out, trained, and whose clients found nothing worth sending. With a downlink, `targets` are the
    models that tickets would have started from, and `differences` what goes down in place of them.

    Args:
        params: the first model.
    """

    def __init__(self, params: np.ndarray) -> None:
        from asyncfed.kernels import merging  # compiled loops are loaded by whoever will merge

        self._kernels, self._is_large = merging, params.nbytes >= LARGE
        self.params = params
        self.own: dict[int, np.ndarray] = {}
        self.starts: dict[int, np.ndarray] = {}
        self.trained: dict[int, np.ndarray] = {}
        self.client_of: dict[int, int] = {}
        self.memories: dict[int, ClientMemory] = {}
        self.new_memories: dict[int, Arrays] = {}
        self.mirrors: dict[int, ClientMemory] = {}
        self.new_mirrors: dict[int, Arrays] = {}
        self.skipped: set[int] = set()
        self.targets: dict[int, np.ndarray] = {}
        self.differences: dict[int, Arrays] = {}
        self._combiner_memories: dict[str, object] = {}

    def dispatch(self, dispatch: Dispatch, own_start: np.ndarray | None = None) -> np.ndarray:
        """Remember which model this ticket starts from: the present one, or the client's own."""
        start = self.params if own_start is None else own_start
        self.starts[dispatch.ticket] = start
        self.client_of[dispatch.ticket] = dispatch.client
        return start

    def dispatch_difference(self, dispatch: Dispatch, downlink: Uplink, target: np.ndarray | None, key: int) -> None:
        """Let a ticket start from what its client makes of the difference that it is sent.

            start = reference + C(target - reference)

        The reference is the model that the client started from in the ticket whose memory it is to use. A client
        without one is sent the whole model.

        Args:
            dispatch: the ticket.
            downlink: C.
            target: the model that the ticket would start from; None for the present one.
            key: what all draws of C are made from.
        """
        ticket, kept = dispatch.ticket, self.mirrors.get(dispatch.client)
        target = self.params if target is None else target
        memory = {} if kept is None or dispatch.memory is None else kept.of_ticket.get(dispatch.memory, {})
        reference, start = memory.get(REFERENCE), target
        if reference is not None:
            message, _ = downlink.encode({}, target - reference, key)
            self.differences[ticket] = message or {}
            start = apply_difference(downlink, reference, self.differences[ticket])
        self.starts[ticket], self.targets[ticket], self.client_of[ticket] = start, target, dispatch.client

    def sent_bytes(self, ticket: int) -> int:
        """What goes down with a ticket that starts from the server's model: the model, or a difference."""
        return message_size(self.differences[ticket]) if ticket in self.differences else self.params.nbytes

    def forget_memory(self, client: int) -> None:
        """A client has lost all that it remembered."""
        self.memories.pop(client, None)
        self.mirrors.pop(client, None)

    def forget(self, ticket: int) -> None:
        """A ticket was lost, skipped or dropped."""
        del self.starts[ticket], self.client_of[ticket]
        self.trained.pop(ticket, None)
        self.skipped.discard(ticket)
        self._forget_extras(ticket)

    def _forget_extras(self, ticket: int) -> None:
        if self.new_memories or self.new_mirrors or self.targets:
            for by_ticket in (self.new_memories, self.new_mirrors, self.targets, self.differences):
                by_ticket.pop(ticket, None)

    def mirror(self, dispatch: Dispatch, memory: int | None) -> Arrays:
        """What the server keeps of the memory that this ticket's client used, which is that of ticket `memory`."""
        first = init_mirror(dispatch.work.uplink, self.params.size, self.params.dtype)
        if not first or memory is None or memory < 0:
            return first
        kept = self.mirrors[dispatch.client].of_ticket[memory]
        return {name: array for name, array in kept.items() if name != REFERENCE}

    def accept_memory(self, dispatch: Dispatch) -> None:
        """This ticket was answered: what its client remembers from it may be used by its next ticket.

        The server keeps what it had before, too, in case that it drops the update.
        """
        ticket, client = dispatch.ticket, dispatch.client
        memory, mirror = self.new_memories.pop(ticket, None), self.new_mirrors.pop(ticket, None)
        if memory is not None:
            self.memories.setdefault(client, ClientMemory()).store(ticket, memory)
        if dispatch.work.downlink is not UNSET:
            mirror = {**(mirror or {}), REFERENCE: self.starts[ticket]}
            self.differences.pop(ticket, None)
        if mirror is not None and dispatch.memory is not None:
            kept = self.mirrors.setdefault(client, ClientMemory())
            kept.keep(dispatch.memory)
            kept.store(ticket, mirror)

    def merge(self, merge: Merge) -> None:
        """`x <- keep * x + sum_i weight_i * payload_i`, or what the named rule makes of it; summed in ticket order."""
        if merge.combiner is not None:
            self._combine(merge, merge.combiner)
            return
        keep, kernels = merge.keep, self._kernels
        # An array that holds the model so far, and that nobody else knows; None while there is none.
        own = renew(self, "params") if self._is_large else None
        for ticket, weight in zip(merge.tickets, merge.weights, strict=True):
            del self.client_of[ticket]
            model, start = self.trained.pop(ticket), self.starts.pop(ticket)
            if self.targets:
                self._forget_extras(ticket)
            adds = merge.of == "delta" and keep == 1.0
            payload = model if adds or merge.of == "model" else model - start
            if own is None:
                own = empty_like(self.params) if self._is_large else np.empty_like(self.params)
                if adds:
                    kernels.add_step(self.params, model, start, weight, own)
                else:
                    kernels.mix(self.params, keep, payload, weight, own)
            elif adds:
                kernels.add_step_into(own, model, start, weight)
            else:
                kernels.mix_into(own, keep, payload, weight)
            self.params, keep = own, 1.0

    def _combine(self, merge: Merge, combine: Combine) -> None:
        name, clients, payloads = combine.name, [], []
        for ticket in merge.tickets:
            clients.append(self.client_of.pop(ticket))
            model, start = self.trained.pop(ticket), self.starts.pop(ticket)
            self._forget_extras(ticket)
            payloads.append(model if merge.of == "model" else model - start)
        memory = self._combiner_memories.get(name)
        if memory is None:
            memory = _rule(name).init(self.params)
        self.params, self._combiner_memories[name], _ = COMBINERS[name].apply(
            memory, self.params, payloads, merge.weights, clients, combine.settings
        )

    def combiner_memory(self, name: str) -> object | None:
        """What the combiner of this name remembers; None before its first merge."""
        return self._combiner_memories.get(name)

    @property
    def _by_ticket(self) -> dict[str, dict[int, Arrays]]:
        return {NEW: self.new_memories, NEW_MIRROR: self.new_mirrors, DIFFERENCE: self.differences}

    # ---- checkpoints -----------------------------------------------------------------------------------------

    def dump(self) -> Arrays:
        """Everything as named arrays. Models that several tickets share are stored once."""
        arrays: Arrays = {"params": self.params}
        models: dict[int, int] = {}
        distinct: list[np.ndarray] = []
        for model in self.starts.values():
            if id(model) not in models:
                models[id(model)] = len(distinct)
                distinct.append(model)
        arrays["tickets"] = np.array(list(self.starts), np.int64)
        arrays["ticket_clients"] = np.array(list(self.client_of.values()), np.int64)
        arrays["ticket_models"] = np.array([models[id(m)] for m in self.starts.values()], np.int64)
        arrays["models"] = _stack(distinct, self.params)
        arrays["trained_tickets"] = np.array(list(self.trained), np.int64)
        arrays["trained"] = _stack(list(self.trained.values()), self.params)
        arrays["own_clients"] = np.array(list(self.own), np.int64)
        arrays["own"] = _stack(list(self.own.values()), self.params)
        if self.skipped:
            arrays["skipped_tickets"] = np.array(sorted(self.skipped), np.int64)
        if self.targets:
            arrays["target_tickets"] = np.array(list(self.targets), np.int64)
            arrays["targets"] = _stack(list(self.targets.values()), self.params)
            arrays["difference_tickets"] = np.array(list(self.differences), np.int64)
        for prefix, new in self._by_ticket.items():
            for ticket, kept in new.items():
                arrays |= {f"{prefix}{ticket}/{name}": array for name, array in kept.items()}
        for prefix, memories in ((KEPT, self.memories), (MIRROR, self.mirrors)):
            for client, remembered in memories.items():
                for ticket, kept in remembered.of_ticket.items():
                    arrays |= {f"{prefix}{client}/{ticket}/{name}": array for name, array in kept.items()}
        for name, memory in self._combiner_memories.items():
            for key, value in COMBINERS[name].dump(memory).items():
                arrays[f"memory/{name}/{key}"] = value
        return arrays

    @classmethod
    def load(cls, arrays: Arrays) -> Vectors:
        """The inverse of `dump`."""
        vectors = cls(arrays["params"])
        # Who starts from the present model shares it again, so that it is stored once the next time too.
        models = [vectors.params if np.array_equal(model, vectors.params) else model for model in arrays["models"]]
        tickets = arrays["tickets"].tolist()
        vectors.starts = {t: models[m] for t, m in zip(tickets, arrays["ticket_models"].tolist(), strict=True)}
        vectors.client_of = dict(zip(tickets, arrays["ticket_clients"].tolist(), strict=True))
        vectors.trained = dict(zip(arrays["trained_tickets"].tolist(), arrays["trained"], strict=True))
        vectors.own = dict(zip(arrays["own_clients"].tolist(), arrays["own"], strict=True))
        vectors.skipped = set(arrays["skipped_tickets"].tolist()) if "skipped_tickets" in arrays else set()
        if "target_tickets" in arrays:
            vectors.targets = dict(zip(arrays["target_tickets"].tolist(), arrays["targets"], strict=True))
            vectors.differences = {ticket: {} for ticket in arrays["difference_tickets"].tolist()}
        for prefix, new in vectors._by_ticket.items():
            for name in [name for name in arrays if name.startswith(prefix)]:
                ticket, part = name.removeprefix(prefix).split("/", 1)
                new.setdefault(int(ticket), {})[part] = arrays[name]
        for prefix, memories in ((KEPT, vectors.memories), (MIRROR, vectors.mirrors)):
            for name in [name for name in arrays if name.startswith(prefix)]:
                client, ticket, part = name.removeprefix(prefix).split("/", 2)
                remembered = memories.setdefault(int(client), ClientMemory())
                remembered.of_ticket.setdefault(int(ticket), {})[part] = arrays[name]
        for name, rule in COMBINERS.items():
            prefix = f"memory/{name}/"
            kept = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
            if kept:
                vectors._combiner_memories[name] = rule.load(kept)
        return vectors


def _rule(name: str) -> Combiner:
    if name not in COMBINERS:
        raise StrategyError(f'A merge names the rule "{name}", which does not exist. {did_you_mean(name, COMBINERS)}')
    return COMBINERS[name]


def _stack(rows: list[np.ndarray], like: np.ndarray) -> Any:
    """Models that nobody changes, one above the other, without a copy of them."""
    return FrozenRows(rows) if rows else np.empty((0, like.size), like.dtype)
