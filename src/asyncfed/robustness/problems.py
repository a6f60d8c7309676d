"""What is learnt in the study: three problems whose honest asynchronous runs end near the optimum in a short time.

Learning rates are constant and batches large, and a run ends while it still makes progress: about 1 % of the first
excess loss is left in the regression, 6 % in the support vector machine. So who only slows a run down is seen too:
twice as slow is about twice the excess. In much longer runs noise is all that is left in the end, and an honest update
cannot be told from its opposite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from asyncfed.core.record import Record
from asyncfed.core.types import Work
from asyncfed.data import IID, Dtype, Holdout, PaperClassification, PaperRegression, QuantileDirichlet, Split
from asyncfed.data.built_in import Digits
from asyncfed.data.data_source import DataSource
from asyncfed.data.splits import LabelDirichlet
from asyncfed.problems import LinearModel, Perceptron, ProblemDescription

SPLITS = {
    "iid": "rows at random, as many for each client",
    "skew": "label or target skew: Dirichlet(0.5) shares of each label, or of each tenth of the targets",
}
"""What the names of splits stand for."""

LOCAL_STEPS = 5
"""Mini-batch steps of every ticket."""


class StudyProblem(Record):
    """A problem of the study.

    Args:
        name: what it is called.
        summary: a line about it.
        data: where the rows come from.
        model: what is learnt.
        dtype: what it is trained in.
        splits: who has which rows, by the names of `SPLITS`.
        holdout: which rows are kept for measuring accuracy; None for none.
        judged_by: "excess", the loss above that of the optimum; or "accuracy" on held-out rows.
        batch_size: rows of a step.
        rate: the learning rate of all runs.
        seconds: virtual seconds of every run.
        remaining: the share of the way from the first model's loss to the least at which the target is reached.
        trusted_rows: rows that the server holds where a defence needs some that it trusts: about as many as a client.
        shares: the shares of liars, beside 0, if nobody asks for others.
    """

    name: str
    summary: str
    data: DataSource
    model: ProblemDescription
    dtype: Dtype
    splits: Mapping[str, Split]
    holdout: Holdout | None
    judged_by: Literal["excess", "accuracy"]
    batch_size: int
    rate: float
    seconds: float
    remaining: float
    trusted_rows: int
    shares: tuple[float, ...]

    @property
    def work(self) -> Work:
        """What each ticket asks for."""
        return Work(steps=LOCAL_STEPS, batch_size=self.batch_size, learning_rate=self.rate)


def _problems() -> list[StudyProblem]:
    shares = (0.1, 0.2, 0.3, 0.4)
    return [
        StudyProblem(
            name="regression",
            summary="least squares on 4,000 drawn rows with 10 features, batches of 50 rows",
            data=PaperRegression(num_samples=4000, num_features=10),
            model=LinearModel(loss="least_squares"),
            dtype="float64",
            splits={"iid": IID(), "skew": QuantileDirichlet(concentration=0.5, bins=10, min_size=20)},
            holdout=None,
            judged_by="excess",
            batch_size=50,
            rate=0.006,
            seconds=40.0,
            remaining=0.02,
            trusted_rows=200,
            shares=shares,
        ),
        StudyProblem(
            name="svm",
            summary="a support vector machine (squared hinge, l2 0.01) on 4,000 drawn rows, batches of 100 rows",
            data=PaperClassification(num_samples=4000, num_features=10, low=-1.0, high=1.0, bias=0.0),
            model=LinearModel(loss="squared_hinge", l2=0.01, penalize_bias=False),
            dtype="float64",
            splits={"iid": IID(), "skew": LabelDirichlet(concentration=0.5, min_size=20)},
            holdout=None,
            judged_by="excess",
            batch_size=100,
            rate=0.1,
            seconds=40.0,
            remaining=0.1,
            trusted_rows=200,
            shares=shares,
        ),
        StudyProblem(
            name="digits",
            summary="a network with 16 hidden units on 1,797 handwritten digits, batches of 64 rows",
            data=Digits(),
            model=Perceptron(hidden=16, num_classes=10),
            dtype="float32",
            splits={"iid": IID(), "skew": QuantileDirichlet(concentration=0.5, bins=10, min_size=20)},
            holdout=Holdout(validation=0.0, test=0.2),
            judged_by="accuracy",
            batch_size=64,
            rate=0.5,
            seconds=40.0,
            remaining=0.12,
            trusted_rows=100,
            shares=(0.3,),
        ),
    ]


PROBLEMS: dict[str, StudyProblem] = {problem.name: problem for problem in _problems()}
"""All problems by name."""
