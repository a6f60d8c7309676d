from asyncfed.arena.measured_run import RunOutcome
from asyncfed.arena.results_store import RunStore, arena_digest
from asyncfed.runs.result_lines import read_lines

DONE = RunOutcome("reached", "", 3.5, 1200, 40.0, None, 0.01, 0.5, 12, 3.5)


def test_a_run_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "runs.jsonl"
    RunStore(file, "a/b/c/sync", "code", {}).add("k", DONE)
    [line] = read_lines(file)
    assert line["label"] == "a/b/c/sync"
    assert RunStore(file, "a/b/c/sync", "code", {"k": line["outcome"]}).read("k") == DONE


def test_a_line_of_another_kind_is_computed_anew(tmp_path):
    assert RunStore(tmp_path / "runs.jsonl", "", "code", {"k": {"verdict": 3}}).read("k") is None
    assert RunStore(tmp_path / "runs.jsonl", "", "code", {}).read("k") is None


def test_the_digest_is_of_the_code_and_not_of_the_moment():
    assert arena_digest() == arena_digest()
