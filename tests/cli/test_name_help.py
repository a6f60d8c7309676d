"""Help lists problems, delays and the usual strategies with a line each, the same as `asyncfed list` has."""

import pytest

from asyncfed.cli.list_commands import _names_of
from asyncfed.cli.name_help import NAMES, help_text
from asyncfed.presets import DELAYS, PROBLEMS, STRATEGIES


@pytest.mark.parametrize(("section", "known"), [("strategies", STRATEGIES), ("problems", PROBLEMS), ("delays", DELAYS)])
def test_it_says_what_the_list_says(section, known):
    listed = _names_of(section)
    assert NAMES[section] == {name: listed[name] for name in NAMES[section]}
    assert section == "strategies" or NAMES[section].keys() == set(known)


def test_every_name_has_a_line_that_fits_a_terminal(cli):
    lines = cli("run", "--help").raw.splitlines()
    for names in NAMES.values():
        for name in names:
            assert any(line.split()[:1] == [name] for line in lines), name
    assert max(map(len, help_text().splitlines())) <= 78
