"""Files that a study leaves behind, written together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from asyncfed.core.errors import ConfigError


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write these texts as files into a folder, which is made if there is none.

    Args:
        folder: where.
        texts: by the name of the file.

    Returns:
        Their paths, in the same order.

    Raises:
        ConfigError: they cannot be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"The results cannot be written to {folder} ({error.strerror}). Choose another place."
        ) from error
    return [folder / name for name in texts]
