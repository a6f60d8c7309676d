"""Sixteen airlines predict how late their flights arrive, and keep their flights to themselves.

    python examples/flights_by_carrier.py

All flights that left New York in 2013. Needs the extra `data`; no network. The same on the command line:

    asyncfed run --data flights --strategy fedbuff
"""

import asyncfed as af

experiment = af.presets.table(
    "flights",
    strategy=af.strategies.FedBuff(concurrency=8, buffer_size=8, work=af.Work(batch_size=128, learning_rate=0.01)),
    rounds=40,
)
print("\n".join(experiment.prepare_data().notes))

run = af.run(experiment)
print(f"\n{run.verdict}: {run.reason}; {run.evaluations['elapsed'][-1]:.0f} s of virtual time")
rmse = (2 * run.evaluations["test_loss"]) ** 0.5
print(f"typical error on flights nobody trained on: {rmse[0]:.1f} minutes at first, {rmse[-1]:.1f} at the end\n")
print(run.clients)

weights = dict(zip(experiment.prepare_data().preparation.feature_names, run.params, strict=False))
print("minutes of arrival delay that go with")
for name in ("dep_delay", "distance", "origin=JFK", "origin=LGA"):
    print(f"  {name:<11} {weights[name]:6.2f}")

run.clients.plot().savefig("flights_by_carrier.png", dpi=130)
