"""Counts what agreed and what was caught, and says so at the end."""

import pytest

AGREED, CAUGHT = [], []


@pytest.fixture
def agreed():
    """`agreed(difference)`: one more schedule on which two implementations agree this well."""
    return AGREED.append


@pytest.fixture
def caught():
    """`caught(True or False)`: one more injected mistake, and whether the checks found it."""
    return CAUGHT.append


def pytest_terminal_summary(terminalreporter):
    if CAUGHT:
        terminalreporter.write_line(f"{sum(CAUGHT)} of {len(CAUGHT)} injected mistakes caught")
    if AGREED:
        terminalreporter.write_line(f"{len(AGREED)} schedules agreed, largest difference {max(AGREED):.1e}")
