"""Events of a journal, read by name; and what they say together about each merge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from asyncfed.core.errors import JournalError
from asyncfed.core.record import from_plain
from asyncfed.core.types import Work
from asyncfed.store.schema import CANCEL, DISPATCH, DROP, LOST, MERGE, SKIPPED

StoredEvent: TypeAlias = tuple[int, float, int, int | None, int | None, int, float | None, float | None, int | None]
"""An event as a file holds it: the detail by its number."""


class Event(NamedTuple):
    """One row of the journal: `seq`, `time` (s) and `kind`, then what that kind has (the table is in `schema`).

    `a` and `b` are numbers whose meaning depends on the kind; the properties below give them their names. `detail` is
    JSON. A property or `require_…` that the event's kind does not have, or that damage removed, raises JournalError.
    """

    seq: int
    time: float
    kind: int
    ticket: int | None
    client: int | None
    version: int
    a: float | None
    b: float | None
    detail: str | None

    def require_ticket(self) -> int:
        """The ticket, of an event that must have one."""
        if self.ticket is None:
            raise self._damage("no ticket")
        return self.ticket

    def require_client(self) -> int:
        """The client, of an event that must have one."""
        if self.client is None:
            raise self._damage("no client")
        return self.client

    @property
    def duration(self) -> float:
        """Seconds, of a report or a skip: of the work; of a loss: since the ticket was dispatched."""
        return self._number(self.a, "duration")

    @property
    def energy(self) -> float:
        """Joules spent on computing, of a report, a skip or a loss."""
        return self._number(self.b, "energy")

    @property
    def weight(self) -> float:
        """What the update counted, of a merge of a single ticket."""
        return self._number(self.a, "weight")

    @property
    def keep(self) -> float:
        """What the model before the merge counted, of a merge."""
        return self._number(self.b, "keep")

    @property
    def num_examples(self) -> int:
        """How many rows the client has, of a join."""
        return self._whole(self.a, "number of examples")

    @property
    def is_fault(self) -> bool:
        """Whether the refusal counts as a fault of the client, of a refusal."""
        return bool(self._number(self.a, "mark of a fault"))

    @property
    def reason(self) -> str | None:
        """Why, of a drop, loss, leave, stop or refusal; None if none is known."""
        return None if self.detail is None else str(self._decode_detail())

    def require_reason(self) -> str:
        """The reason, of an event that must have one."""
        if self.detail is None:
            raise self._damage("no reason")
        return str(self._decode_detail())

    @property
    def metrics(self) -> dict[str, float] | None:
        """What was measured, of a report; None if nothing was."""
        metrics = self._table()
        metrics.pop("memory", None)
        return metrics or None

    @property
    def memory(self) -> int | None:
        """Which ticket's memory was used, of a report or a skip; None if it was the one its client was to use."""
        used = self._table().get("memory")
        return None if used is None else self._whole(used, "memory")

    @property
    def timer(self) -> int:
        """The number of the timer, of a wake."""
        return self._whole(self.a, "number of a timer")

    @property
    def info(self) -> dict[str, Any]:
        """What the rule wrote down about a merge, of a merge."""
        info = self._table().get("info", {})
        if not isinstance(info, dict):
            raise self._damage(f"the info {info!r}")
        return info

    def _number(self, value: float | None, name: str) -> float:
        if value is None:
            raise self._damage(f"no {name}")
        return value

    def _whole(self, value: Any, name: str) -> int:
        if not isinstance(value, int | float) or value != value // 1:
            raise self._damage(f"no {name}" if value is None else f"the {name} {value!r}")
        return int(value)

    def _decode_detail(self) -> Any:
        try:
            return json.loads(self.detail or "")
        except (ValueError, RecursionError) as error:
            raise self._damage(f"a detail that is not JSON ({error})") from error

    def _table(self) -> dict[str, Any]:
        """The detail, which must be a table; empty if there is none."""
        table = {} if self.detail is None else self._decode_detail()
        if not isinstance(table, dict):
            raise self._damage(f"the detail {table!r:.60}")
        return table

    def _damage(self, what: str) -> JournalError:
        return JournalError(f"The journal is damaged: event {self.seq} has {what}. Restore the file from a copy.")


class RecordedUpdate(NamedTuple):
    """One update of a merge: its ticket, its client, its weight and the work that it was the result of."""

    ticket: int
    client: int
    weight: float
    work: Work


class RecordedMerge(NamedTuple):
    """A merge as the journal records it. `rule` names what combined the updates (None: the weighted sum)."""

    event: Event
    updates: tuple[RecordedUpdate, ...]
    rule: str | None
    settings: Mapping[str, Any]


def recorded_merges(events: Iterable[Event]) -> Iterator[RecordedMerge]:
    """All merges in order, each with the clients and works of its tickets.

    Args:
        events: all events of a run from its first on; dispatches say whose a ticket is.

    Raises:
        JournalError: an event cannot have happened after those before it.
    """
    dispatched: dict[int, tuple[int, str]] = {}
    work_of = cache(lambda text: from_plain(json.loads(text), Work))
    form_of = cache(_decode_form)  # merges of one ticket mostly have the same text
    for event in events:
        if event.kind == DISPATCH:
            dispatched[event.require_ticket()] = (event.require_client(), event.detail or "")
        elif event.kind == MERGE:
            try:
                single = event.ticket is not None
                form = form_of(event.detail or "") if single else _decode_form(event.detail or "")
                tickets, weights = ((event.ticket,), (event.weight,)) if single else (form["tickets"], form["weights"])
                updates = []
                for ticket, weight in zip(tickets, weights, strict=True):
                    client, work = dispatched.pop(ticket)
                    updates.append(RecordedUpdate(ticket, client, float(weight), work_of(work)))
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                raise JournalError(
                    f"The journal is damaged: event {event.seq} is a merge that cannot have happened ({error!r}). "
                    "Restore the file from a copy."
                ) from error
            yield RecordedMerge(event, tuple(updates), form["rule"], form["settings"])
        elif event.kind in (DROP, LOST, CANCEL, SKIPPED):
            dispatched.pop(event.require_ticket(), None)


def _decode_form(detail: str) -> dict[str, Any]:
    """What a merge says of itself, with its rule's name and settings under names of their own."""
    form = dict(json.loads(detail))
    combiner = form.get("combiner") or {"name": None, "settings": ()}
    return {**form, "rule": combiner["name"], "settings": dict(combiner["settings"])}
