"""Whether an attack is a function of what a liar knows, and gives a change that can be sent."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from asyncfed.attacks import Attack, LiarView, Targets
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Work
from asyncfed.testing.array_check import expect_vector, left_alone
from asyncfed.testing.value_check import check_part

NUM_PARAMS = 12
LIARS = (1, 2, 5)
NUM_CLIENTS = 8


def check_attack(attack: Attack, seed: int = 0) -> None:
    """Refuse an attack whose lies depend on anything but what the liar knows, or that are no changes.

    A lie must have the shape and the dtype of a change, be finite, be the same when asked again, and leave alone what
    it was given; the same holds for rows that are poisoned. Whether a ticket is lied in, and how long it is held back,
    must follow from its key. The attack must be written and read back.

    Args:
        attack: what is checked.
        seed: of the check's own draws.

    Raises:
        AssertionError: it says what is wrong.
    """
    check_part(attack, "attack", Attack)
    assert attack.knows in ("own", "coalition", "all"), f'knows is {attack.knows!r}; it must be "own", … or "all".'
    assert attack.least_liars >= 1, f"least_liars is {attack.least_liars}; an attack needs at least 1 liar."
    for ticket in range(20):
        _check_ticket(attack, draw_key(purpose_key(seed, "check_attack"), LIARS[0], ticket))
    for dtype in (np.float64, np.float32):
        for ticket in range(3):
            _check_lie(attack, _view(attack, dtype, seed, ticket))
    if attack.poisons_rows:
        for targets in (Targets("labels", 2), Targets("classes", 4), Targets("numbers", 0)):
            _check_rows(attack, targets, seed)


def _check_ticket(attack: Attack, key: int) -> None:
    lies, factor = attack.lies(key), attack.delay_factor(key)
    assert lies == attack.lies(key), "lies(key) is not repeatable: it must follow from the key."
    assert factor == attack.delay_factor(key), "delay_factor(key) is not repeatable: it must follow from the key."
    assert isfinite(factor), f"delay_factor is {factor}; it must be finite."
    assert factor >= 1.0, f"delay_factor is {factor}; a report can be held back, not hurried: it must be at least 1."


def _view(attack: Attack, dtype: type, seed: int, ticket: int) -> LiarView:
    draws = np.random.Generator(np.random.Philox(key=draw_key(purpose_key(seed, "check_attack"), 1, ticket)))
    start, change, first = draws.normal(size=(3, NUM_PARAMS)).astype(dtype)

    def honest_changes(start: np.ndarray, clients: Sequence[int], work: Work) -> np.ndarray:
        known = {"own": {LIARS[0]}, "coalition": set(LIARS), "all": set(range(NUM_CLIENTS))}[attack.knows]
        unknown = set(clients) - known
        assert not unknown, f'it uses data of clients {sorted(unknown)}, but its `knows` is "{attack.knows}".'
        rows = [np.cos((client + 1.0) * start) for client in clients]
        return np.array(rows, dtype=dtype)

    return LiarView(start, change, LIARS[0], Work(), seed + ticket, seed, LIARS, NUM_CLIENTS, first, honest_changes)


def _check_lie(attack: Attack, view: LiarView) -> None:
    given = {"view.start": view.start, "view.change": view.change, "view.first": view.first}
    with left_alone(given, "lie"):
        lie = attack.lie(view)
    expect_vector(lie, view.change.shape, view.change.dtype, "what lie gives")
    assert np.array_equal(lie, attack.lie(view)), "lie is not repeatable: draw from view.key or view.secret only."


def _check_rows(attack: Attack, targets: Targets, seed: int) -> None:
    draws = np.random.Generator(np.random.Philox(key=purpose_key(seed, "check_attack rows")))
    x = draws.normal(size=(9, 5))
    y = {"labels": np.array([-1.0, 1.0]), "classes": np.arange(4.0), "numbers": draws.normal(size=9)}[targets.kind]
    y = np.resize(y, 9)
    try:
        attack.check(targets)
    except ConfigError:  # it says that it cannot be used on such rows
        return
    with left_alone({"the features": x, "the targets": y}, "poison"):
        both = attack.poison(x, y, targets, seed), attack.trigger(x, y, targets)
    for made in both:
        assert made[0].shape[1:] == x.shape[1:], f"poisoned rows have shape {made[0].shape[1:]}, rows {x.shape[1:]}."
        assert len(made[0]) == len(made[1]), f"there are {len(made[0])} poisoned rows and {len(made[1])} targets."
        assert np.isfinite(made[0]).all(), "poisoned rows are not finite."
        assert np.isfinite(made[1]).all(), "poisoned targets are not finite."
        if targets.kind == "classes":
            assert np.isin(made[1], np.arange(targets.num_classes)).all(), "poisoned targets are no classes."
    once, again = attack.poison(x, y, targets, seed), attack.poison(x, y, targets, seed)
    same = all(np.array_equal(one, other) for one, other in zip(once, again, strict=True))
    assert same, "poison is not repeatable: draw from `key` only."
    assert len(once[1]) == len(y), f"poison gives {len(once[1])} rows of {len(y)}; a liar keeps as many as it has."
