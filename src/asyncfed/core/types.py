"""The values that the server, the strategies and the engines exchange."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, Record, UnsetType, leave_out

Payload: TypeAlias = Literal["model", "delta"]


@runtime_checkable
class Uplink(Protocol):
    """What a client does to its change, `trained - start`, before it sends it. A frozen value, registered by kind.

    | method | answers with |
    |---|---|
    | `init(num_params, dtype)` | the client's memory before its first ticket: named arrays, `{}` if there is none |
    | `size(num_params, itemsize)` | the bytes of a message; None if they are known only after training |
    | `encode(memory, change, key)` | the message, named arrays, and the memory after it; None: not worth sending |
    | `decode(message, num_params, dtype)` | the change that the server sees |

    `remembers` says whether there is a memory. A client whose `encode` answers with None says so in a byte; its ticket
    is skipped: nothing is merged, and the memory counts. An uplink whose class says `needs_start = True` is also given
    the model that the training began with: `encode(memory, change, key, start)`. Of one whose class says `mirrored =
    True` the server keeps a copy of each client's memory, moved by messages alone: `decode(message, num_params, dtype,
    memory)` answers with the change and the memory after it. All randomness of `encode` comes from `key`. Neither
    `memory` nor `change` may be changed in place. Messages come from outside: `decode` raises ValueError for one that
    is impossible.
    """

    @property
    def remembers(self) -> bool: ...
    def init(self, num_params: int, dtype: Any) -> dict[str, Any]: ...
    def size(self, num_params: int, itemsize: int) -> int | None: ...
    def encode(self, memory: dict[str, Any], change: Any, key: int) -> tuple[dict[str, Any] | None, dict[str, Any]]: ...
    def decode(self, message: dict[str, Any], num_params: int, dtype: Any) -> Any: ...


class Work(Config):
    """What a client is asked to do: mini-batch SGD over its own data.

        w <- w - learning_rate / (e + 1)**decay * (gradient of the loss + proximal * (w - w_start))     local epoch e

    Args:
        epochs: passes over the client's data, 1 or more.
        batch_size: rows of a step, 1 or more.
        learning_rate: of local epoch 0, above 0.
        decay: how the rate falls over local epochs, 0 (constant) or more.
        proximal: FedProx's term `proximal/2 * |w - w_start|^2`, 0 (none) or more.
        start: the model it starts from: "server", sent with the ticket, or "own", the client's own last one (the
            published scripts never download).
        momentum: the heavy ball's m, from 0 to below 1: v <- m v + gradient, w <- w - step v, from v = 0 in each
            ticket. PyTorch problems only.
        patience: stop after so many epochs in a row, 1 or more, whose mean loss (over batches, each before its step,
            without penalty) was no lower than the lowest before.
        steps: make so many mini-batch steps, 1 or more, in as many epochs as that takes; `epochs` then counts for
            nothing.
        loss: whether the client measures its mean loss, penalty included, with the model it ends with, and reports it.
            It tells something about the client's data, and so do the next two.
        start_loss: the same with the model it starts from.
        start_rms: whether the client measures the root mean square of its rows' losses, without penalty, with the model
            it starts from, and reports it.
        uplink: what the client does to its change before it sends it, in order: see `asyncfed.uplinks`. Without it, or
            with nothing but `Whole`, the trained model is sent.
        downlink: an uplink without a memory, by which the server sends how the model differs from the one that the
        client
            last started from; what it leaves out is in the next difference. Without it, the model is sent.

    What is UNSET is not written down, so that works without it read as they always did.

    >>> Work(epochs=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: work.epochs is 0; a client must do at least 1 local epoch.
    """

    epochs: int = 1
    batch_size: int = 32
    learning_rate: float = 0.01
    decay: float = 0.0
    proximal: float = 0.0
    start: Literal["server", "own"] = "server"
    momentum: float | UnsetType = UNSET
    patience: int | UnsetType = UNSET
    steps: int | UnsetType = UNSET
    loss: bool | UnsetType = UNSET
    start_loss: bool | UnsetType = UNSET
    start_rms: bool | UnsetType = UNSET
    uplink: tuple[Uplink, ...] | UnsetType = UNSET
    downlink: Uplink | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.momentum == 0:
            leave_out(self, "momentum")
        elif self.momentum is not UNSET and not 0 < self.momentum < 1:
            raise ConfigError(f"work.momentum is {self.momentum}; it must be at least 0 and below 1.")
        for name, unit in (("patience", "epoch"), ("steps", "mini-batch step")):
            if getattr(self, name) is not UNSET and getattr(self, name) < 1:
                raise ConfigError(f"work.{name} is {getattr(self, name)}; it must be at least 1 {unit}, or left out.")
        if self.uplink is not UNSET and all(getattr(uplink, "is_identity", False) for uplink in self.uplink):
            leave_out(self, "uplink")  # nothing happens to the change, so the model itself is sent
        if self.downlink is not UNSET:
            self._check_downlink(self.downlink)
        if self.epochs < 1:
            raise ConfigError(f"work.epochs is {self.epochs}; a client must do at least 1 local epoch.")
        if self.batch_size < 1:
            raise ConfigError(f"work.batch_size is {self.batch_size}; it must be at least 1.")
        if not (isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ConfigError(f"work.learning_rate is {self.learning_rate}; it must be a positive number.")
        for name, value in (("decay", self.decay), ("proximal", self.proximal)):
            if not (isfinite(value) and value >= 0):
                raise ConfigError(f"work.{name} is {value}; it must be zero or a positive number.")

    def _check_downlink(self, downlink: Uplink) -> None:
        if self.start == "own":
            raise ConfigError('work.downlink has nothing to send: work.start is "own". Leave one of them out.')
        if any(getattr(downlink, name, False) for name in ("remembers", "needs_start", "draws_noise")):
            raise ConfigError(
                f"work.downlink is {type(downlink).__name__}, which has a memory of its own, needs a start or adds "
                "noise. Use a codec alone, such as TopK: what it leaves out is in the next difference."
            )

    @property
    def remembers(self) -> bool:
        """Whether what a client does depends on what it did before, so that it may have one ticket at a time only."""
        if self.start == "own" or self.downlink is not UNSET:
            return True
        return self.uplink is not UNSET and any(uplink.remembers for uplink in self.uplink)

    def count_steps(self, num_examples: int) -> int:
        """The mini-batch steps that a client with so many samples is asked for; with `patience` it may make fewer."""
        steps = self.epochs * -(-num_examples // self.batch_size)
        return steps if self.steps is UNSET or not num_examples else self.steps


class Budget(Config):
    """When a run ends by itself; whichever comes first. None is no limit.

    Args:
        rounds: so many rounds, 1 or more.
        updates: so many merged updates, 1 or more.
        elapsed: so many seconds of the run's clock, above 0: virtual in a simulation, real in a live run.

    >>> Budget(rounds=100).updates is None
    True
    """

    rounds: int | None = None
    updates: int | None = None
    elapsed: float | None = None

    def __post_init__(self) -> None:
        for name in ("rounds", "updates", "elapsed"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise ConfigError(f"budget.{name} is {value}; it must be positive, or left out for no limit.")


class Dispatch(Record):
    """A ticket that is out. Made only by `Server`.

    Args:
        ticket: its number, counted from 0 over the whole run.
        client: who trains.
        base_version: the model's version that the client starts from.
        work: what the client is asked to do, at the rate of the moment.
        memory: for work that remembers, the client's last accepted ticket, whose memory it is to use; -1 if there is
            none. None for other work.
    """

    ticket: int
    client: int
    base_version: int
    work: Work
    memory: int | None = None


class Report(Record):
    """What comes back with a finished ticket.

    Args:
        ticket: the ticket's number.
        client: who trained.
        arrived_at: seconds of the run's clock.
        duration: seconds that the work took, without waiting in the client's queue.
        num_examples: the client's samples.
        metrics: numbers by name that the client measured, or the rule of the server found out about it; or None.
        memory: the ticket whose memory the client really used; -1 if it began anew, because it had lost it or there was
            none. None for work that does not remember.
    """

    ticket: int
    client: int
    arrived_at: float
    duration: float
    num_examples: int
    metrics: Mapping[str, float] | None = None
    memory: int | None = None


class Update(Record):
    """A report as a strategy sees it.

    Args:
        dispatch: the ticket.
        report: what came back.
        staleness: how many versions were merged since the client downloaded the model, 0 or more.
    """

    dispatch: Dispatch
    report: Report
    staleness: int


@runtime_checkable
class Schedule(Protocol):
    """How the learning rate follows the rounds and the delays; see `asyncfed.strategies.schedules`.

    `plan(work, round, delay_spread)` answers with the work at the rate of this round. `delay_spread` is the longest
    minus the shortest duration, in seconds, among the reports of the last complete round; None before there is one.
    """

    def plan(self, work: Work, round: int, delay_spread: float | None) -> Work: ...


class Train(Record):
    """Decision: give a client a new ticket.

    Args:
        client: who is to train.
        work: what it is asked to do.
        schedule: sets the work's rate at the moment of dispatch; None leaves it as it is.
        base_version: the version to start from; None for the present one. An older one must still be held: by a ticket
            that is out, or reported and neither merged nor dropped.
    """

    client: int
    work: Work
    schedule: Schedule | None = None
    base_version: int | None = None


class Combine(Record):
    """A vector rule of `asyncfed.rules` by name, and its settings for one merge.

    Args:
        name: the rule's name.
        settings: `(name, value)` pairs, in the order the rule expects.
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()


class Merge(Record):
    """Decision: `x <- keep * x + sum_i weights[i] * payload(tickets[i])`, or what `combiner` makes of them.

    Args:
        tickets: reported tickets, each merged or dropped once.
        weights: one for each ticket, finite.
        keep: what is kept of the model, finite.
        of: the payload: the client's "model", or its "delta" from the model it started from.
        combiner: a rule that sees the vectors, in place of the weighted sum.
        ends_round: whether this closes a round; that is what "per round" means in every table and figure.
    """

    tickets: tuple[int, ...]
    weights: tuple[float, ...]
    keep: float = 1.0
    of: Payload = "delta"
    combiner: Combine | None = None
    ends_round: bool = False


class Drop(Record):
    """Decision: forget a reported ticket.

    Args:
        ticket: its number.
        reason: a sentence for the journal.
    """

    ticket: int
    reason: str


class Cancel(Record):
    """Decision: give up a ticket that is out. Its client is free at once; its time and energy count up to now.

    Args:
        ticket: its number.
        reason: a sentence for the journal.
    """

    ticket: int
    reason: str


class Wake(Record):
    """Decision: be called again, in `on_wake`, after some time.

    Args:
        after: seconds of the run's clock, 0 or more.
        number: handed to `on_wake`, to tell timers apart; 0 or more.
    """

    after: float
    number: int = 0


class Stop(Record):
    """Decision: end the run.

    Args:
        reason: a sentence for the journal and the user.
    """

    reason: str


Action: TypeAlias = Train | Merge | Drop | Cancel | Wake | Stop
Output: TypeAlias = Dispatch | Merge | Drop | Cancel | Wake | Stop


def staleness_of(dispatch: Dispatch, version: int) -> int:
    """Versions merged since this dispatch's download. The one line that defines staleness."""
    return version - dispatch.base_version
