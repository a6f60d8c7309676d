"""Sixteen airlines predict how late their flights arrive, and keep their flights to themselves.

    python examples/flights_by_carrier.py

All flights that left New York in 2013. Needs the extra `data`; no network. The same on the command line:

    asyncfed run flights --personalize
"""

import asyncfed as af

experiment, data, _ = af.presets.prepare_table("flights")
print("\n".join(data.notes))

run = af.run(experiment, prepared=data)
print(f"\n{run.reason}; {run.evaluations['elapsed'][-1]:.0f} s of virtual time")
first, kept = ((2 * run.evaluations["test_loss"][row]) ** 0.5 for row in (0, run.kept))
print(f"typical error on flights nobody trained on: {first:.1f} minutes at first, {kept:.1f} at the end\n")

personal = run.personalize()  # the common model, trained further on each airline's own flights where that helps
print(personal.table)

weights = dict(zip(data.preparation.feature_names, run.params, strict=False))
print("minutes of arrival delay that go with")
for name in ("dep_delay", "distance", "origin=JFK", "origin=LGA"):
    print(f"  {name:<11} {weights[name]:6.2f}")

personal.table.plot().savefig("flights_by_carrier.png", dpi=130)
