"""Each known mistake, injected into AsyncFed, is noticed by a conformance check; without it the check passes."""

from functools import cache

import pytest
from tests.conformance import test_laws
from tests.conformance.mistakes import MISTAKES, injected
from tests.conformance.test_agreement import agree

SEEDS = range(30)
each = pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)


def passes(check):
    """Whether this check is content."""
    try:
        if check.startswith("law: "):
            law, name = check.removeprefix("law: ").removesuffix("]").split("[")
            getattr(test_laws, law)(name)
        else:
            for seed in SEEDS:
                agree(check, seed)
    except AssertionError:  # any other error is a mistake of the mistake's own
        return False
    return True


@pytest.fixture(scope="module")
def content():
    """`content(check)`: whether it passes without any mistake."""
    return cache(passes)


def test_there_are_enough():
    assert len(MISTAKES) >= 40
    assert len({mistake.what for mistake in MISTAKES}) == len(MISTAKES)


@pytest.mark.slow
@each
def test_is_caught(mistake, content, caught):
    assert content(mistake.check)
    with injected(mistake):
        noticed = not passes(mistake.check)
    caught(noticed)
    assert noticed, f"{mistake.check} does not notice: {mistake.what}"


def test_the_texts_are_still_there():
    for mistake in MISTAKES:
        with injected(mistake):
            pass
