"""Files in FedScale's format: speeds and presence as they say, no code run, and errors that name the place."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.delays import Delays, FedScaleAvailability, FedScaleDelays, PredictableDelays, expected_durations
from asyncfed.experiment import Experiment, from_toml, to_toml
from asyncfed.testing import check_delay

CAPACITY = {1: {"computation": 20.0, "communication": 1000.0}, 2: {"computation": 150, "communication": 64.0}}
BEHAVIOUR = {
    7: {"duration": 60, "active": [10, 50], "inactive": [20, 70], "finish_time": 100, "model": "Pixel"},
    8: {"duration": 0, "active": [], "inactive": [], "finish_time": 100, "model": "never there"},
    9: {"duration": 90, "active": [0], "inactive": [500], "finish_time": 100, "model": "always there"},
}


def write(folder: Path, name: str, content: Any, as_pickle: bool = False) -> str:
    path = folder / name
    path.write_bytes(pickle.dumps(content) if as_pickle else json.dumps(content).encode())
    return str(path)


@pytest.mark.parametrize("as_pickle", [False, True])
def test_the_seconds_are_those_of_fedscales_formula(tmp_path: Path, as_pickle: bool) -> None:
    """3 times the inference of every row; bytes by kilobits of 1024 bits."""
    delays = FedScaleDelays(capacity=write(tmp_path, "capacity", CAPACITY, as_pickle))
    model = delays.bind(num_clients=3, seed=0)
    work = Work(epochs=2)
    assert model.timing(0, 5, work, 100).compute == pytest.approx(3 * 0.020 * 2 * 100)
    assert [model.timing(c, 0, Work(steps=5, batch_size=10), 100).compute for c in (1, 2)] == pytest.approx([22.5, 3.0])
    assert model.transfer_seconds(1, 8192, 16384) == (1.0, 2.0)
    assert isinstance(delays, PredictableDelays)
    means = expected_durations(delays, 2, 0, work, num_examples=[100, 10], bytes_down=8192)
    assert means.compute == pytest.approx([12.0, 9.0])
    assert means.download == pytest.approx([8192 / 128000, 1.0])


@pytest.mark.parametrize("as_pickle", [False, True])
def test_devices_are_present_when_the_trace_says(tmp_path: Path, as_pickle: bool) -> None:
    file = write(tmp_path, "behaviour", BEHAVIOUR, as_pickle)
    model = Delays(availability=FedScaleAvailability(file=file)).bind(num_clients=4, seed=0)
    assert model.finish_compute(0, 0.0, 5.0) == 15.0
    assert model.finish_compute(0, 15.0, 10.0) == 55.0
    assert model.finish_compute(0, 60.0, 15.0) == 115.0  # the trace repeats after 100 s
    assert model.finish_compute(1, 0.0, 250.0) == 250.0  # device 8 is left out, 9 is always there
    assert model.finish_compute(2, 0.0, 5.0) == 15.0  # and then they repeat
    means = expected_durations(Delays(availability=FedScaleAvailability(file=file)), 2, seed=0)
    assert means.compute == pytest.approx([1 / 0.3, 1.0])


def test_both_together_pass_the_check_and_have_a_written_form(tmp_path: Path) -> None:
    availability = FedScaleAvailability(file=write(tmp_path, "behaviour", BEHAVIOUR))
    capacity = write(tmp_path, "capacity", CAPACITY)
    delays = FedScaleDelays(capacity=capacity, availability=availability, dropout=0.2, timeout=99.0)
    check_delay(delays)
    experiment = Experiment(delays=delays)
    assert from_toml(to_toml(experiment)) == experiment
    assert delays.may_lose
    assert delays.bind(1, 0).lost_after(0, 0, delays.bind(1, 0).timing(0, 0, Work(), 1)) == 99.0
    assert delays.simplifications(queued=True)[1:] == (
        "tickets are lost, which is left out",
        "absences count with their mean only",
    )


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    delays = FedScaleDelays(capacity=write(tmp_path, "capacity", CAPACITY))
    assert delays.bind(1, 0).timing(0, 0, Work(), 1).compute == pytest.approx(0.06)
    write(tmp_path, "capacity", {"a": {"computation": 1000.0, "communication": 1.0}})
    assert delays.bind(1, 0).timing(0, 0, Work(), 1).compute == pytest.approx(3.0)


class Malicious:
    """What a pickle can do to those who read it carelessly."""

    def __reduce__(self) -> Any:
        return print, ("run by a pickle",)


def test_a_pickle_runs_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "capacity", {1: Malicious()}, as_pickle=True)
    with pytest.raises(
        ConfigError, match=r"it needs builtins\.print.*If you trust the file, turn it into JSON: python"
    ):
        FedScaleDelays(capacity=file).bind(1, 0)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "holds []; it must be a dictionary of devices"),
        ({}, "holds {}; it must be a dictionary of devices"),
        ({"a": 3}, "key 'a': 3, where a dictionary of the device is expected"),
        ({"a": {"computation": 1.0}}, "key 'a': communication is missing; there are computation"),
        ({"a": {"computation": 0, "communication": 1}}, "key 'a': computation is 0; it must be a finite number above"),
        ({"a": {"computation": "x", "communication": 1}}, "key 'a': computation is 'x'"),
    ],
)
def test_what_is_wrong_with_a_file_of_speeds_is_said(tmp_path: Path, content: Any, words: str) -> None:
    file = write(tmp_path, "capacity.json", content)
    with pytest.raises(ConfigError, match=re.escape(words)) as raised:
        FedScaleDelays(capacity=file).bind(1, 0)
    assert file in str(raised.value)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"active": [1], "inactive": [], "finish_time": 9}, "1 active and 0 inactive; there must be as many of each"),
        ({"active": [5], "inactive": [4], "finish_time": 9}, "active[0] is 5 and inactive[0] is 4"),
        ({"active": [-5], "inactive": [4], "finish_time": 9}, "active[0] is -5; it must be a finite number"),
        ({"active": 3, "inactive": [4], "finish_time": 9}, "active is 3; it must be a list of seconds"),
        ({"active": [3], "inactive": [4]}, "finish_time is missing; there are active, inactive"),
        ({"active": [], "inactive": [], "finish_time": 9}, "has no device that is ever present"),
    ],
)
def test_what_is_wrong_with_a_file_of_presence_is_said(tmp_path: Path, entry: Any, words: str) -> None:
    file = write(tmp_path, "behaviour.json", {"a": entry})
    with pytest.raises(ConfigError, match=re.escape(words)):
        FedScaleAvailability(file=file).bind(1, 0)


def test_a_file_that_is_no_trace_or_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ConfigError, match="text is neither JSON nor a pickle"):
        FedScaleAvailability(file=str(tmp_path / "text")).bind(1, 0)
    (tmp_path / "cut").write_bytes(pickle.dumps(CAPACITY)[:-5])
    with pytest.raises(ConfigError, match="is a pickle that cannot be read as plain values"):
        FedScaleDelays(capacity=str(tmp_path / "cut")).bind(1, 0)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        FedScaleAvailability(file=str(tmp_path / "nothing")).bind(1, 0)
