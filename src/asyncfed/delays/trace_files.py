"""Reading files of traces: JSON, or a pickle that holds nothing but plain values."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asyncfed.core.errors import ConfigError

CONVERT = (
    "python -c \"import json, pickle; json.dump(pickle.load(open('{}', 'rb')), open('trace.json', 'w'), "
    'default=float)"'
)


def read_plain(path: str) -> Any:
    """What a file of JSON, or a pickle of dictionaries, lists, texts and numbers, holds.

    A pickle can name any function and have it called when it is read. Here none can: a pickle that names anything is
    refused, with the command that turns one that you trust into JSON.
    """
    content = _bytes(path)
    if content[:1] == b"\x80":  # how every pickle of protocol 2 or later begins; no JSON does
        return _read_pickle(path, content)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is neither JSON nor a pickle: {error}. Check the path.") from error


def read_objects(path: str) -> Iterator[tuple[str, Any]]:
    """The objects of a JSON file, one after another, with words for where each is.

    The file is one object of objects by their key, a list of objects, or has one object a line.
    """
    content = _bytes(path)
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        yield from _read_lines(path, content)
        return
    if isinstance(whole, dict) and "messages" not in whole:
        yield from ((f"{path}, key {key!r}", value) for key, value in whole.items())
    else:
        items = whole if isinstance(whole, list) else [whole]
        yield from ((f"{path}, entry {number}", value) for number, value in enumerate(items, start=1))


def _read_lines(path: str, content: bytes) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            try:
                yield f"{path}, line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ConfigError(
                    f"{path}, line {number}: {error}. The file must be JSON, as a whole or line by line."
                ) from error


def file_state(path: str) -> tuple[int, int]:
    """What tells that a file has changed since it was read: its time and size; (0, 0) of one that is missing."""
    try:
        found = Path(path).stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}. Check the path.") from error


class _PlainUnpickler(pickle.Unpickler):
    """Reads plain values only: whatever a pickle would import, and so could call, is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it needs {module}.{name}")


def _read_pickle(path: str, content: bytes) -> Any:
    try:
        return _PlainUnpickler(io.BytesIO(content)).load()
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise ConfigError(
            f"{path} is a pickle that cannot be read as plain values: {error}. Reading others could run code that is "
            f"hidden in them. If you trust the file, turn it into JSON: {CONVERT.format(path)}"
        ) from error
