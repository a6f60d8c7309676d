"""Python files and modules that are imported before a command starts, for the parts they register."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from asyncfed.core.errors import ConfigError


def import_parts(source: str) -> None:
    """Import a module by its dotted name, or a Python file by its path.

    A file is imported under its own name from its own folder, which is put on the path, so that worker processes find
    it as well.

    Args:
        source: a name such as `my_package.parts`, or a path that ends in .py.

    Raises:
        ConfigError: it does not exist, another module has its name, or it fails to import.
    """
    name = _prepare_file(Path(source)) if source.endswith(".py") else source
    try:
        import_module(name)
    except Exception as error:
        raise ConfigError(
            f"--import {source} failed with {type(error).__name__}: {error}. Name a Python file, or a module that "
            "Python finds from here."
        ) from error


def _prepare_file(path: Path) -> str:
    """The name under which the file can be imported from now on."""
    if not path.is_file():
        raise ConfigError(f"--import {path}: there is no such file. Name a Python file or a module.")
    folder, name = str(path.absolute().parent), path.stem
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) != str(path.absolute()):
        raise ConfigError(f'--import {path}: another module is called "{name}" already. Rename the file.')
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return name
