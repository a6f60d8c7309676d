"""The commands list and presets."""

import re

import pytest

import asyncfed as af
from asyncfed import registry
from asyncfed.cli.list_commands import USES
from asyncfed.presets import BUILT_IN, DELAYS, PRESETS, PROBLEMS, STRATEGIES
from asyncfed.registry import kinds


def test_everything_that_has_a_name_is_listed_with_a_line(cli):
    listed = cli("list")
    assert listed.code == 0
    parts = ("strategy", "rule", "uplink", "sampler", "discount", "schedule", "split", "data", "distribution")
    # Other tests register parts of their own, some without a word about them.
    registered = [
        name for part in parts for name, made in kinds(part).items() if made.__module__.startswith("asyncfed.")
    ]
    for name in (*PRESETS, *STRATEGIES, *DELAYS, *BUILT_IN, *PROBLEMS, *registered):
        assert re.search(rf"^{name} +\S", listed.raw, re.MULTILINE), name


@pytest.mark.parametrize("section", USES)
def test_one_section(cli, section):
    listed = cli("list", section)
    assert (listed.code, listed.err) == (0, "")
    assert listed.raw.split()[0] == section
    names = re.findall(r"^\w+(?= )", listed.raw, re.MULTILINE)
    assert len(names) == len(set(names)) > 1


def test_an_unknown_section(cli):
    assert 'no list of "strategie". Did you mean "strategies"?' in cli("list", "strategie").err


def test_parts_of_ones_own_are_listed(cli, tmp_path, monkeypatch):
    strategies = registry._parts["strategy"]
    monkeypatch.setattr(strategies, "members", dict(strategies.members))  # other tests are about all that are known
    (tmp_path / "my_listed_parts.py").write_text(
        "from asyncfed import register\nfrom asyncfed.strategies import FedAvg\n\n"
        '@register("strategy")\nclass Mine(FedAvg, tag="mine_of_a_list"):\n    """Waits for everybody. Always."""\n'
    )
    listed = cli("--import", tmp_path / "my_listed_parts.py", "list", "strategies").raw
    assert re.search(r"^mine_of_a_list +Waits for everybody +$", listed, re.MULTILINE)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_prints_one_as_toml(cli, name):
    assert af.from_toml(cli("presets", name).raw) == PRESETS[name][1]()


def test_presets_without_a_name_lists_them(cli):
    assert cli("presets").raw == cli("list", "presets").raw


def test_a_card_with_its_facts(cli):
    said = cli("card", "scaffold").raw
    assert "When to use it:" in said
    assert "sums are enough (secure aggregation)  no" in said
