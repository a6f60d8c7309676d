"""What is learnt in the study: a regression and a convolutional network, both with enough parameters to compress.

The paper's own regression has 10 weights, of which 1 % is less than one. Here it has 500, drawn by the same law, and
noise: its target is near what a constant learning rate can reach, as in real training, and not at the beginning of the
way, where a few large steps would do.
"""

from __future__ import annotations

from asyncfed.core.record import Record
from asyncfed.core.types import Work
from asyncfed.data import Dtype, Holdout, PaperRegression, QuantileDirichlet, Split
from asyncfed.data.built_in import DigitImages
from asyncfed.data.data_source import DataSource
from asyncfed.problems import Convolutional, LinearModel, ProblemDescription
from asyncfed.uplinks import Uplink

LOCAL_STEPS = 5
"""Mini-batch steps of every ticket."""


class StudyProblem(Record):
    """A problem of the study. A run of it has reached the target when a share `remaining` of the way is left.

    Args:
        name: what it is called.
        summary: a line about it.
        data: where the rows come from.
        model: what is learnt.
        dtype: what it is trained in.
        split: who has which rows.
        holdout: which rows are kept for measuring accuracy; None for none.
        batch_size: rows of a step.
        seconds: what a ticket's computing takes, the median: a little more than it takes on one core of a server.
        rates: learning rates, each of which is tried for every strategy and codec.
        small_rate: a rate far from the largest that works, at which event-triggered sending is compared.
        remaining: the share of the way from the first model's loss to the least at which the target is reached. The
            least is that of the optimum, or 0 where that is not known.
        measure_every: merged updates from one measurement to the next.
        most_updates: merged updates after which a run is given up.
        seeds: how many, if nobody says.
    """

    name: str
    summary: str
    data: DataSource
    model: ProblemDescription
    dtype: Dtype
    split: Split
    holdout: Holdout | None
    batch_size: int
    seconds: float
    rates: tuple[float, ...]
    small_rate: float
    remaining: float
    measure_every: int
    most_updates: int
    seeds: int

    def work(self, rate: float, uplink: tuple[Uplink, ...]) -> Work:
        """What each ticket asks for; without uplinks, the trained model itself is sent."""
        return Work(steps=LOCAL_STEPS, batch_size=self.batch_size, learning_rate=rate, uplink=uplink)


def _problems() -> list[StudyProblem]:
    skew = QuantileDirichlet(concentration=0.5, bins=10, min_size=20)
    return [
        StudyProblem(
            name="regression",
            summary="least squares with 500 weights in double precision (4,000 bytes) on 5,000 drawn rows, batches of "
            "5 rows",
            data=PaperRegression(
                num_samples=5000, num_features=499, low=-1.0, high=1.0, weight_low=-1.0, weight_high=1.0, noise=5.0
            ),
            model=LinearModel(loss="least_squares"),
            dtype="float64",
            split=skew,
            holdout=None,
            batch_size=5,
            seconds=0.001,
            rates=(0.05, 0.025, 0.0125, 0.006, 0.003),
            small_rate=0.003,
            remaining=0.02,
            measure_every=20,
            most_updates=4000,
            seeds=5,
        ),
        StudyProblem(
            name="digits",
            summary="a convolutional network with 1,898 weights in single precision (7,592 bytes) on 1,797 "
            "handwritten digits, batches of 16 rows",
            data=DigitImages(),
            model=Convolutional(height=8, width=8, channels=8, num_classes=10),
            dtype="float32",
            split=QuantileDirichlet(concentration=0.3, bins=10, min_size=20),
            holdout=Holdout(validation=0.0, test=0.2),
            batch_size=16,
            seconds=0.005,
            rates=(0.4, 0.2, 0.1),
            small_rate=0.05,
            remaining=0.04,
            measure_every=20,
            most_updates=1200,
            seeds=3,
        ),
    ]


PROBLEMS: dict[str, StudyProblem] = {problem.name: problem for problem in _problems()}
"""All problems by name."""
