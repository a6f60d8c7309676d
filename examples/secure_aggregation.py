"""What secure aggregation would cost: final loss and bytes against the bits of its sums and against drop-outs.

    python examples/secure_aggregation.py

Secure aggregation lets a server see sums of updates only. Its sums are of whole numbers, modulo a power of two, and a
group of which too many members drop out is lost. Here that arithmetic is simulated (nothing is hidden), to choose its
settings before a protocol is deployed. The problem is the paper's regression, with FedBuff.
"""

import asyncfed as af
from asyncfed.analysis.secure_sums import count_secure_sums
from asyncfed.errors import ConfigError
from asyncfed.presets import regression
from asyncfed.rules import SecureAggregation
from asyncfed.strategies import FedBuff

base = regression(rounds=100)
base = af.replace(base, strategy=FedBuff(concurrency=10, buffer_size=10, work=base.strategy.work))


def show(name, experiment):
    run = af.run(experiment)
    sums = count_secure_sums(run.journal.event_rows())
    sent = run.rounds["bytes_up"][-1] / run.evaluations["updates"][-1]
    loss = run.evaluations["objective"][-1]
    print(f"{name:34} {loss:10.6f} {sent:8.0f} {sums.lost:6} {sums.wrapped:8}")


print(f"{'':34} {'objective':>10} {'bytes/up':>8} {'lost':>6} {'wrapped':>8}")
show("no secure aggregation", base)
for bits in (8, 12, 16, 24, 32, 62):
    show(f"{bits} bits", af.replace(base, secure_aggregation=SecureAggregation(bits=bits, limit=4.0)))
for bits in (8, 12):
    stochastic = SecureAggregation(bits=bits, limit=4.0, rounding="stochastic")
    show(f"{bits} bits, stochastic rounding", af.replace(base, secure_aggregation=stochastic))
fixed = SecureAggregation(bits=12, limit=4.0, fraction_bits=14)
show("12 bits, 14 of them fractions", af.replace(base, secure_aggregation=fixed))
for dropout in (0.05, 0.2, 0.4):
    losing = SecureAggregation(bits=32, limit=4.0, dropout=dropout)
    show(f"32 bits, {dropout:.0%} of members drop out", af.replace(base, secure_aggregation=losing))

try:
    af.replace(base, strategy=af.strategies.FedAsync(), secure_aggregation=SecureAggregation())
except ConfigError as refusal:
    print(f"\nFedAsync: {refusal}")
