"""What is learnt in the arena: four problems that a simulated run solves in a fraction of a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asyncfed.core.record import Record
from asyncfed.data import IID, Dtype, PaperRegression, QuantileDirichlet, QuantitySkew, Split
from asyncfed.data.built_in import BreastCancer, Diabetes, Digits
from asyncfed.data.data_source import DataSource
from asyncfed.data.splits import LabelDirichlet
from asyncfed.problems import LinearModel, Perceptron, ProblemDescription

SPLITS = {
    "iid": "rows at random, as many for each client",
    "skew": "label or target skew: Dirichlet shares of each label, or of each tenth of the targets",
    "quantity": "rows at random, but clients' shares of them are one Dirichlet draw",
}
"""What the names of splits stand for."""


class ArenaProblem(Record):
    """A problem of the arena. A run of it has reached the target when a share `remaining` of the way is left.

    Args:
        name: what it is called.
        summary: a line about it.
        data: where the rows come from.
        model: what is learnt.
        dtype: what it is trained in.
        splits: who has which rows, by the names of `SPLITS`.
        batch_size: rows of a step.
        rate: the learning rate that tuning starts with.
        remaining: the share of the way from the first model's loss to the least that is left at the target.
        worst_remaining: the same for the mean loss of the worst tenth of the clients.
        measure_every: merged updates from one measurement to the next.
        most_updates: merged updates after which a run is given up.
        least_loss: what the least loss is taken to be where the optimum is not known; it cannot be lower.
    """

    name: str
    summary: str
    data: DataSource
    model: ProblemDescription
    dtype: Dtype
    splits: Mapping[str, Split]
    batch_size: int
    rate: float
    remaining: float
    worst_remaining: float
    measure_every: int
    most_updates: int
    least_loss: float = 0.0


def _splits(skewed: Split, min_size: int) -> dict[str, Split]:
    return {"iid": IID(), "skew": skewed, "quantity": QuantitySkew(concentration=1.0, min_size=min_size)}


def _problems() -> list[ArenaProblem]:
    of_targets: dict[str, Any] = {"concentration": 0.3, "bins": 10, "min_size": 12}
    return [
        ArenaProblem(
            name="quadratic",
            summary="least squares on 600 drawn rows, exact gradients; the optimum solves a linear system",
            data=PaperRegression(num_samples=600, num_features=10, low=0.0, high=2.0, noise=4.0),
            model=LinearModel(loss="least_squares"),
            dtype="float64",
            splits=_splits(QuantileDirichlet(**of_targets), 12),
            batch_size=600,
            rate=0.05,
            remaining=3e-4,
            worst_remaining=1e-3,
            measure_every=3,
            most_updates=2000,
        ),
        ArenaProblem(
            name="ridge",
            summary="ridge regression on 442 patients (diabetes), batches of 16 rows",
            data=Diabetes(target_scaling=True),
            model=LinearModel(loss="least_squares", l2=0.01, penalize_bias=False),
            dtype="float64",
            splits=_splits(QuantileDirichlet(**of_targets), 12),
            batch_size=16,
            rate=0.1,
            remaining=0.012,
            worst_remaining=0.02,
            measure_every=3,
            most_updates=2000,
        ),
        ArenaProblem(
            name="logistic",
            summary="logistic regression on 569 tumours (breast cancer), batches of 16 rows",
            data=BreastCancer(),
            model=LinearModel(loss="logistic", l2=0.01, penalize_bias=False),
            dtype="float64",
            splits=_splits(LabelDirichlet(concentration=0.3, min_size=12), 12),
            batch_size=16,
            rate=1.0,
            remaining=0.008,
            worst_remaining=0.02,
            measure_every=3,
            most_updates=2000,
        ),
        ArenaProblem(
            name="digits",
            summary="a network with 16 hidden units on 1,797 handwritten digits, batches of 16 rows",
            data=Digits(),
            model=Perceptron(hidden=16, num_classes=10),
            dtype="float32",
            splits=_splits(QuantileDirichlet(concentration=0.3, bins=10, min_size=16), 16),
            batch_size=16,
            rate=0.3,
            remaining=0.12,
            worst_remaining=0.2,
            measure_every=6,
            most_updates=600,
        ),
    ]


PROBLEMS: dict[str, ArenaProblem] = {problem.name: problem for problem in _problems()}
"""All problems by name."""
