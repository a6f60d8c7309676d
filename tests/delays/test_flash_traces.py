"""Files in FLASH's format: what phones logged, read as when they can train."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.delays import Delays, FlashAvailability, expected_durations
from asyncfed.testing import check_delay

HOUR, DAY = 3600.0, 86400.0
NIGHT = """2020-01-02 20:00:00\tscreen_off
2020-01-02 21:00:00\twifi
2020-01-02 22:00:00\tbattery_charged_on
2020-01-02 22:30:00\t87%
2020-01-03 02:00:00\tscreen_on
2020-01-03 02:15:00\tscreen_off
2020-01-03 06:00:00\tbattery_charged_off
2020-01-03 09:00:00\t4G
"""
LATER = """
2020-01-04 01:00:00\tbattery_charged_on
2020-01-04 01:00:00\tWIFI
2020-01-04 01:00:00\tscreen_lock
2020-01-04 03:00:00\tphone_off
"""


def write(folder: Path, *messages: str, lines: bool = False) -> str:
    phones = {f"guid{i}": {"guid": f"guid{i}", "model": "X", "messages": text} for i, text in enumerate(messages)}
    path = folder / "behaviour.json"
    path.write_text("\n".join(map(json.dumps, phones.values())) if lines else json.dumps(phones))
    return str(path)


@pytest.mark.parametrize("lines", [False, True])
def test_a_phone_is_there_while_it_charges_has_wifi_and_is_idle(tmp_path: Path, lines: bool) -> None:
    """Of two days that repeat: from 22:00 to 2:00 and from 2:15 to 6:00."""
    availability = FlashAvailability(file=write(tmp_path, NIGHT, LATER, lines=lines))
    model = availability.bind(num_clients=2, seed=0)
    assert model.finish(0, 0.0, HOUR) == 23 * HOUR
    assert model.finish(0, 23 * HOUR, 3.5 * HOUR) == 26.75 * HOUR
    assert model.finish(0, 30 * HOUR, HOUR) == (48 + 23) * HOUR
    # The second phone's one day is the third of the file; repeated, it is every day.
    assert model.finish(1, 0.0, 0.5 * HOUR) == 1.5 * HOUR
    assert model.finish(1, 50 * HOUR, 0.5 * HOUR) == 50.5 * HOUR
    means = expected_durations(Delays(availability=availability), 2, seed=0)
    assert means.compute == pytest.approx([48 / 7.75, 24 / 2])
    check_delay(Delays(availability=availability))


def test_what_has_to_be_true_can_be_chosen(tmp_path: Path) -> None:
    file = write(tmp_path, NIGHT)
    anyhow = FlashAvailability(file=file, idle=False).bind(1, 0)
    assert anyhow.finish(0, 0.0, 8 * HOUR) == 30 * HOUR  # from 22 to 6
    on_battery = FlashAvailability(file=file, charging=False, idle=False).bind(1, 0)
    assert on_battery.finish(0, 0.0, 12 * HOUR) == 33 * HOUR  # from 21 to 9
    with pytest.raises(ConfigError, match="all false"):
        FlashAvailability(file=file, charging=False, wifi=False, idle=False)


def test_a_presence_across_the_end_of_the_days_goes_on_at_their_beginning(tmp_path: Path) -> None:
    """One phone has two days from the second on; of the file's first day it has the second of them."""
    file = write(tmp_path, "2020-01-01 00:00:00\twifi\n", NIGHT)
    model = FlashAvailability(file=file).bind(1, 0)  # the first phone is never there
    assert model.finish(0, 0.0, HOUR) == HOUR  # the morning of its second day
    assert model.finish(0, 24 * HOUR, HOUR) == (24 + 23) * HOUR


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("yesterday\twifi", "key 'guid0', line 1 of its messages: 'yesterday\\\\twifi' does not begin with a time"),
        ("\n2020-01-02 20:00:00\ttelephoning", "line 2 of its messages"),
        ("2020-01-02 20:00:00 wifi", "does not begin with a time"),
        ("2020-01-02 20:00:00", "has no known state after a tab; known are battery_charged_on"),
        ("", "has no messages of any phone"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(tmp_path: Path, messages: str, words: str) -> None:
    file = write(tmp_path, messages)
    with pytest.raises(ConfigError, match=re.escape(words).replace(r"\\\\t", r"\\+t")) as raised:
        FlashAvailability(file=file).bind(1, 0)
    assert file in str(raised.value)


def test_what_is_no_phone_or_no_json_is_said(tmp_path: Path) -> None:
    path = tmp_path / "behaviour.json"
    path.write_text(json.dumps([{"guid": "a"}]))
    with pytest.raises(ConfigError, match=r'entry 1: a phone is expected, an object with a text "messages"'):
        FlashAvailability(file=str(path)).bind(1, 0)
    path.write_text(json.dumps({"messages": NIGHT}) + "\n{broken\n")
    with pytest.raises(ConfigError, match=r"line 2: .* The file must be JSON, as a whole or line by line"):
        FlashAvailability(file=str(path)).bind(1, 0)
