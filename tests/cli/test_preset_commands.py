"""The command presets."""

import re

import pytest

import asyncfed as af
from asyncfed.presets import DELAYS, PRESETS, STRATEGIES


def test_presets_lists_all_names(cli):
    result = cli("presets")
    assert result.code == 0
    for name in (*PRESETS, *STRATEGIES, *DELAYS):
        assert re.search(rf"\b{name}\b", result.out)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_prints_one_as_toml(cli, name):
    assert af.from_toml(cli("presets", name).raw) == PRESETS[name][1]()
