"""A server rule and an uplink of your own in one file: checked, then run with a strategy that is shipped.

    python examples/own_rule.py

The rule remembers how long the steps of the server were and cuts off one that is much longer than those before it.
The uplink sends each change in half precision, and keeps what rounding took away for the next time. Every upload is
then a quarter as long; on slow links that is time.
"""

import numpy as np

import asyncfed as af
from asyncfed.testing import check_rule, check_uplink


@af.register("rule")
class Capped(af.Rule, af.Config, tag_field="kind", tag="capped"):
    """The weighted sum of the merge, but never a step longer than `times` the mean length of the steps so far."""

    times: float = 3.0

    def init(self, params, num_clients):
        return {"lengths": np.zeros(2)}  # how many steps there were, and the sum of their lengths

    def step(self, memory, params, arrivals, merge, key):
        merged, _, _ = af.rules.Mean().step({}, params, arrivals, merge, key)
        count, total = memory["lengths"]
        length = float(np.linalg.norm(merged - params))
        share = min(1.0, self.times * total / count / length) if count and length else 1.0
        after = np.array([count + 1, total + share * length])
        return params + share * (merged - params), {"lengths": after}, {"share": share}


@af.register("uplink")
class HalfPrecision(af.Config, tag_field="kind", tag="half_precision"):
    """The change in 16 bits; the client remembers what was rounded away."""

    remembers = True

    def init(self, num_params, dtype):
        return {"residual": np.zeros(num_params, dtype)}

    def size(self, num_params, itemsize):
        return 2 * num_params

    def encode(self, memory, change, key):
        wanted = memory["residual"] + change
        sent = wanted.astype("<f2")
        return {"change": sent}, {"residual": wanted - sent.astype(wanted.dtype)}

    def decode(self, message, num_params, dtype):
        sent = message.get("change")
        if sent is None or sent.dtype != np.dtype("<f2") or sent.shape != (num_params,):
            raise ValueError(f"{num_params} numbers of 16 bits are due")
        return sent.astype(dtype)


check_rule(Capped())
check_uplink(HalfPrecision())
print("check_rule, check_uplink: passed")

links = af.delays.Delays(bandwidth_up=af.delays.Constant(value=64.0))
work = af.Work(epochs=1, batch_size=32, learning_rate=0.005)
plain = af.strategies.FedBuff(concurrency=5, buffer_size=5, work=work)
own = af.replace(plain, work=af.replace(work, uplink=(HalfPrecision(),)), rule=Capped())
for name, strategy in (("plain", plain), ("own parts", own)):
    run = af.run(af.Experiment(name=name, strategy=strategy, delays=links, budget=af.Budget(rounds=60)))
    rounds, objective = run.rounds, run.evaluations["objective"][-1]
    print(f"{name:10} objective {objective:.4f}", end="  ")
    print(f"sent up {rounds['bytes_up'][-1]} bytes  virtual time {rounds['elapsed'][-1]:.1f} s")
print("steps that the rule has cut:", int((run.merge_info["share"] < 1).sum()))
assert af.from_toml(af.to_toml(run.experiment)) == run.experiment
