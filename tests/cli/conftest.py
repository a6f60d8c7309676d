"""Files that commands read and write."""

import pytest

import asyncfed as af


@pytest.fixture
def toml(small, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(af.to_toml(small()))
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "runs" / "run.sqlite"


@pytest.fixture
def done(small, out):
    """The file of a finished run."""
    af.run(small(), out=out).journal.close()
    return out
