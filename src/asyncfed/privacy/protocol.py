"""What a mode of private runs is: how it changes a strategy, and what it claims."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from asyncfed.core.record import Record
from asyncfed.core.types import Budget
from asyncfed.registry import declare_part
from asyncfed.strategies.protocol import Strategy


class Setting(Record):
    """What a mode has to know of the run besides its strategy.

    Args:
        num_clients: how many clients there are.
        budget: when the run ends by itself.
        stops_by_measurement: whether a measurement on clients' data may end it, or choose its model.
        measures_drift: whether trainings are repeated to be measured.
        shares_rows: whether the rows of the server's own are drawn from those of clients.
    """

    num_clients: int
    budget: Budget
    stops_by_measurement: bool = False
    measures_drift: bool = False
    shares_rows: bool = False


class Claim(Record):
    """What a private run promises every client, in numbers.

    Args:
        mode: "central", "tree" or "local".
        epsilon: what a client loses at most, if it takes part as often as it may.
        delta: with which it does.
        clip: C, the longest change of a client.
        multiplier: z, the noise's standard deviation in clips: of a release, of a tree's node, or of an upload.
        participations: how often a client takes part at most: in releases, or with uploads.
        separation: how many releases are at least between two in which it takes part.
        releases: how many releases there are at most; None where it does not matter.
        divisor: K, by which a release is divided; 1 for uploads.
    """

    mode: str
    epsilon: float
    delta: float
    clip: float
    multiplier: float
    participations: int
    separation: int = 0
    releases: int | None = None
    divisor: int = 1

    @property
    def noise(self) -> float:
        """The standard deviation of the noise in every parameter of a release, a node, or an upload."""
        return self.multiplier * self.clip / self.divisor


@runtime_checkable
class Privacy(Protocol):
    """A mode of private runs: a frozen value, registered by kind.

    | method | answers with |
    |---|---|
    | `compose(strategy, setting)` | the strategy with clipping, noise and caps; ConfigError for what is unsound |
    | `claim(strategy, setting)` | what a run with it promises every client |
    | `epsilon_after(claim, participations)` | what a client has lost that took part so often |

    `unprotected_evaluation` says whether models are measured on clients' data, which nothing protects.
    """

    @property
    def unprotected_evaluation(self) -> bool: ...
    def compose(self, strategy: Strategy, setting: Setting) -> Strategy: ...
    def claim(self, strategy: Strategy, setting: Setting) -> Claim: ...
    def epsilon_after(self, claim: Claim, participations: int) -> float: ...


declare_part("privacy", Privacy)
