"""What each rule makes of a fixed random schedule of arrivals, so that no change of behaviour goes unseen.

Regenerate with `pytest tests/rules/test_golden.py --regenerate-golden`; see tests/golden/README.md.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.types import Merge, Work
from asyncfed.rules import (
    CA2FL,
    Arrival,
    CenteredClipping,
    Compared,
    Ctma,
    DcAsgd,
    Fadas,
    FedNova,
    GeometricMedian,
    LastModels,
    Median,
    ModelCache,
    NormBounded,
    QFair,
    Robust,
    RuleRun,
    Scaffold,
    TierModels,
)
from asyncfed.rules.aso_fed import AsoFed
from asyncfed.rules.batch_table import BatchTable
from asyncfed.rules.feddyn import FedDyn
from asyncfed.rules.table_mean import TableMean

FOLDER = Path(__file__).parent.parent / "golden" / "rules"
NUM_CLIENTS, NUM_PARAMS, MERGES = 5, 3, 25

CASES = {
    "aso_fed": AsoFed(),
    "batch_table": BatchTable(),
    "ca2fl": CA2FL(),
    "compared": Compared(),
    "compared_factor": Compared(liars=2, factor=1.2),
    "dc_asgd": DcAsgd(compensation=0.3),
    "dc_asgd_adaptive": DcAsgd(adaptive=True),
    "fadas": Fadas(staleness_threshold=1),
    "fadas_paper": Fadas(staleness_threshold=1, reading="paper", lr=0.6),
    "feddyn": FedDyn(),
    "fednova": FedNova(),
    "last_models": LastModels(queue_size=4),
    "model_cache": ModelCache(),
    "norm_bounded": NormBounded(quantile=0.25, factor=1.0),
    "qfair": QFair(q=2.0),
    "robust_centered_clipping": Robust(aggregator=CenteredClipping()),
    "robust_ctma": Robust(aggregator=Ctma()),
    "robust_geometric_median": Robust(aggregator=GeometricMedian()),
    "robust_median": Robust(aggregator=Median(liars=0)),
    "scaffold": Scaffold(),
    "table_mean": TableMean(),
    "table_mean_max_age": TableMean(max_age=3),
    "tier_models": TierModels(tiers=2),
}

PROXIMAL = {"feddyn": 2.0}
"""Rules that need a proximal term."""


@pytest.mark.parametrize("name", CASES)
def test_models_are_the_recorded_ones(name, request):
    path = FOLDER / f"{name}.json"
    lines = merged(CASES[name], PROXIMAL.get(name, 0.0))
    if request.config.getoption("--regenerate-golden"):
        path.write_text("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n")
    recorded = json.loads(path.read_text())
    assert len(lines) == len(recorded)
    for number, (line, expected) in enumerate(zip(lines, recorded, strict=True)):
        assert line["merged"] == expected["merged"], f"line {number + 1} of {path.name}"
        assert line["model"] == pytest.approx(expected["model"], rel=1e-12), f"line {number + 1} of {path.name}"


def test_nothing_is_recorded_that_is_not_checked():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)


def merged(rule, proximal):
    """One line per merge: whose updates, and the model after it. Clients pull towards points of their own."""
    chance = Stream(purpose_key(1, "golden arrivals"))
    params = np.zeros(NUM_PARAMS)
    run, out, next_ticket, lines = RuleRun(rule, params, NUM_CLIENTS), [], 0, []
    for version in range(MERGES):
        while len(out) < 5:
            client = chance.below(NUM_CLIENTS)
            out.append((next_ticket, client, version, params, run.send(next_ticket, client).get("correction", 0.0)))
            next_ticket += 1
        arrivals = []
        for ticket, client, base, start, shift in sorted(
            out.pop(chance.below(len(out))) for _ in range(1 + chance.below(3))
        ):
            steps = 1 + chance.below(6)
            work = Work(batch_size=4, learning_rate=0.1, decay=0.5, steps=steps, proximal=proximal)
            model = start
            for step in range(steps):  # 10 samples make three steps an epoch
                noise = np.array([chance.unit() - 0.5 for _ in range(NUM_PARAMS)])
                model = model - 0.1 / (step // 3 + 1.0) ** 0.5 * (model - client + noise + shift)
            weight = 0.25 + 0.5 * chance.unit()
            sent = run.sent_with(ticket)
            measured = {"start_loss": 0.5 * float((start - client) @ (start - client))}
            arrivals.append(
                Arrival(ticket, client, weight, version - base, work, steps, 10, start, model, sent, measured)
            )
        merge = Merge(tuple(a.ticket for a in arrivals), tuple(a.weight for a in arrivals))
        params, _ = run.step(params, arrivals, merge, 0)
        for arrival in arrivals:
            run.forget(arrival.ticket)
        lines.append({"merged": [[a.ticket, a.client, a.staleness] for a in arrivals], "model": params.tolist()})
    return lines
