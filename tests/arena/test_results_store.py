import json

from asyncfed.arena.cells import Cell, base_experiment
from asyncfed.arena.measured_run import RunOutcome
from asyncfed.arena.results_store import RunStore, append_line, code_digest, end_last_line, read_lines, run_key
from asyncfed.core.record import replace

DONE = RunOutcome("reached", "", 3.5, 1200, 40.0, None, 0.01, 0.5, 12, 3.5)


def test_a_run_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "runs.jsonl"
    RunStore(file, "a/b/c/sync", "code", {}).add("k", DONE)
    [line] = read_lines(file)
    assert line["label"] == "a/b/c/sync"
    assert RunStore(file, "a/b/c/sync", "code", {"k": line["outcome"]}).read("k") == DONE


def test_what_was_cut_off_is_ignored_and_the_next_line_begins_anew(tmp_path):
    file = tmp_path / "runs.jsonl"
    append_line(file, {"key": 1})
    with file.open("ab") as cut:
        cut.write(b'{"key": 2, "out')
    assert [line["key"] for line in read_lines(file)] == [1]
    end_last_line(file)
    append_line(file, {"key": 3})
    assert [line["key"] for line in read_lines(file)] == [1, 3]
    end_last_line(file)
    assert file.read_text().count("\n") == 3


def test_a_line_of_another_kind_is_computed_anew(tmp_path):
    assert RunStore(tmp_path / "runs.jsonl", "", "code", {"k": {"verdict": 3}}).read("k") is None
    assert RunStore(tmp_path / "runs.jsonl", "", "code", {}).read("k") is None
    assert list(read_lines(tmp_path / "none.jsonl")) == []


def test_a_run_is_named_by_its_experiment_and_the_code():
    experiment = base_experiment(Cell("ridge", "equal", "iid"), 1)
    keys = {run_key("code", experiment), run_key("other", experiment), run_key("code", replace(experiment, seed=2))}
    assert len(keys) == 3
    assert run_key("code", experiment) in keys
    assert code_digest() == code_digest()


def test_lines_are_plain_json(tmp_path):
    append_line(tmp_path / "runs.jsonl", {"a": 1.5, "b": None})
    assert json.loads((tmp_path / "runs.jsonl").read_text()) == {"a": 1.5, "b": None}
