"""Cards and the table of algorithms say what the algorithms say of themselves."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.presets.algorithm_cards import algorithm_table, card_named, cards_page, fact_lines
from asyncfed.strategies import Algorithm, add_algorithm, algorithms


def test_every_algorithm_has_one_row_and_one_card():
    table, cards = algorithm_table(), cards_page()
    for name in algorithms():
        assert table.count(f"| [{name}](#") == 1
        assert f"`{name}`" in cards


def test_a_card_begins_with_what_the_file_begins_with():
    assert card_named("fedbuff").startswith("FedBuff: collect K reports")
    assert dict(fact_lines("scaffold"))["sent beside the model"] == "down 1 vector, up nothing"


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r'no algorithm "fedbuf". Did you mean "fedbuff"'):
        card_named("fedbuf")


def test_a_name_is_taken_once():
    taken = algorithms()["fedavg"]
    with pytest.raises(ConfigError, match=r'cannot add the algorithm "fedavg": asyncfed.strategies.fedavg has one'):
        add_algorithm(taken, "somewhere.else")
    assert isinstance(taken, Algorithm)


def test_lines_for_lists_are_short():
    for algorithm in algorithms().values():
        assert len(algorithm.summary) <= 100
        assert not algorithm.summary.endswith(".")
