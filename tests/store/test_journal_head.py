"""The head of a file says how far its run is, without reading its events."""

import json

import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.store.journal_head import read_head


def test_a_head_is_what_the_run_says(tmp_path):
    run = af.run(af.presets.regression(strategy="fedbuff", rounds=25), out=tmp_path / "run.sqlite")
    whole, thinned = (read_head(tmp_path / "run.sqlite", points) for points in (1000, 5))
    assert whole.header == run.header
    assert (whole.rounds, whole.updates) == (25, run.rounds["updates"][-1])
    measured = [json.loads(text)["objective"] for text in whole.metrics]
    assert measured == run.evaluations["objective"].tolist()
    assert len(thinned.metrics) <= 6
    assert thinned.metrics[-1] == whole.metrics[-1]


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(JournalError, match="no run"):
        read_head(tmp_path / "nothing.sqlite", 5)
    (tmp_path / "text.sqlite").write_text("text")
    with pytest.raises(JournalError):
        read_head(tmp_path / "text.sqlite", 5)
