"""Counts what agreed and what was caught, and says so at the end; also where tests run in several processes."""

import pytest


@pytest.fixture
def agreed(request):
    """`agreed(difference)`: one more schedule on which two implementations agree this well."""
    return lambda difference: request.node.user_properties.append(("agreed", difference))


@pytest.fixture
def caught(request):
    """`caught(True or False)`: one more injected mistake, and whether the checks found it."""
    return lambda noticed: request.node.user_properties.append(("caught", noticed))


def pytest_terminal_summary(terminalreporter):
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ()) if r.when == "call"]
    found = {
        name: [value for report in reports for key, value in report.user_properties if key == name]
        for name in ("caught", "agreed")
    }
    if found["caught"]:
        terminalreporter.write_line(f"{sum(found['caught'])} of {len(found['caught'])} injected mistakes caught")
    if found["agreed"]:
        count, worst = len(found["agreed"]), max(found["agreed"])
        terminalreporter.write_line(f"{count} schedules agreed, largest difference {worst:.1e}")
