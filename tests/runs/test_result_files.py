import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.runs.result_files import write_texts


def test_files_are_written_into_a_new_folder(tmp_path):
    one, other = write_texts(tmp_path / "new" / "folder", {"a.csv": "x\n", "b.json": "{}\n"})
    assert (one.name, one.read_text()) == ("a.csv", "x\n")
    assert (other.name, other.read_text()) == ("b.json", "{}\n")


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Choose another place"):
        write_texts(tmp_path / "file", {"a.csv": "x\n"})
