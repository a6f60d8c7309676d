"""Nobody but the owner can read a file, not even for the moment it is being made."""

import os

import pytest

from asyncfed.flower import private_files
from asyncfed.flower.private_files import make_private_folder, narrow, open_private_log, write_private


@pytest.fixture(autouse=True)
def _generous_umask(monkeypatch):
    """Nothing of it is owed to the user's umask, nor done by a chmod afterwards."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return path.stat().st_mode & 0o777


def test_new_folders_and_files_are_private_from_the_beginning(tmp_path, monkeypatch):
    for late in ("chmod", "fchmod"):
        monkeypatch.setattr(private_files.os, late, None)
    make_private_folder(tmp_path / "above" / "folder")
    write_private(tmp_path / "file", b"content")
    os.close(open_private_log(tmp_path / "log"))
    assert mode(tmp_path / "above" / "folder") == 0o700
    assert mode(tmp_path / "file") == mode(tmp_path / "log") == 0o600


def test_a_file_in_place_of_a_readable_one_is_private(tmp_path):
    (tmp_path / "file").write_text("old")
    write_private(tmp_path / "file", b"new")
    assert mode(tmp_path / "file") == 0o600
    assert (tmp_path / "file").read_bytes() == b"new"


def test_existing_ones_are_narrowed_but_not_what_a_link_points_to(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("")
    folder = tmp_path / "federation"
    (folder / "keys").mkdir(parents=True)
    (folder / "keys" / "program").touch(mode=0o755)
    (folder / "link").symlink_to(outside)
    narrow([folder])
    assert mode(folder) == mode(folder / "keys") == 0o700
    assert mode(folder / "keys" / "program") == 0o700
    assert mode(outside) == 0o666
