"""You measured how long your clients take. Which strategy gets there first?

    python examples/stragglers.py

`MEASURED` stands for a log of your own: seconds per finished task, client by client. Two of the eight are slow, and
one of them is erratic. Every strategy gets the same data, durations, local work and constant learning rate; they are
compared by the virtual time they need to reach the same loss, paired by seed.
"""

from pathlib import Path

import asyncfed as af
from asyncfed.delays import Delays
from asyncfed.presets import strategy_named

MEASURED = {
    0: [1.1, 0.9, 1.0],
    1: [1.3, 1.2, 1.2],
    2: [0.8, 0.9, 0.9],
    3: [1.0, 1.4, 1.1],
    4: [1.2, 1.0, 1.3],
    5: [0.9, 1.0, 1.0],
    6: [9.5, 11.0, 10.2],
    7: [2.0, 25.0, 3.0],
}
log = Path("durations.csv")
log.write_text("client,seconds\n" + "".join(f"{c},{s}\n" for c, times in MEASURED.items() for s in times))

experiment = af.presets.regression(num_clients=8, delays=Delays(trace=str(log)), rounds=80)
work = af.Work(epochs=20, batch_size=32, learning_rate=0.001)
names = ("sync", "afl", "afl_mixing", "fedasync", "fedbuff")
comparison = af.compare(
    experiment, {n: strategy_named(n, 4, work, af.ConstantRate()) for n in names}, range(3), target=0.06, workers=1
)

print(f"to reach an objective of {comparison.target:.3g}, mean of {len(comparison.seeds)} seeds")
for name in names:
    seconds = comparison.time_to_target(name, "elapsed").mean()
    ratio = comparison.ratio("sync", name, "elapsed")
    rounds = comparison.time_to_target(name, "round").mean()
    print(f"{name:11} {seconds:6.0f} s   {rounds:4.0f} rounds   {ratio.mean:4.1f} times as fast as sync")
