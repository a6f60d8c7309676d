"""`asyncfed flower new`: a small Flower app to begin with."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

from asyncfed.core.errors import ConfigError

PUBLISHER = "asyncfed"


def write_app(folder: Path, num_nodes: int = 3, torch: bool = False) -> list[Path]:
    """Write the app into a folder that is new or empty, around a PyTorch module or a linear model.

    The answer lists what was written.
    """
    if num_nodes < 1:
        raise ConfigError(f"nodes is {num_nodes}; a federation needs at least 1.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there already and not empty; nothing was written. Name a new folder.")
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or "app"
    package = "app_" + name.replace("-", "_")
    words = {"name": name, "package": package, "publisher": PUBLISHER, "nodes": str(num_nodes)}
    words["robust"] = "true" if num_nodes >= 3 else "false"
    words["extras"] = "flower,torch" if torch else "flower"
    words["problem"] = f', problem="{package}.model:make_problem"' if torch else ""
    app, kind = folder / package, "torch_" if torch else ""
    written = [
        _write(folder / "pyproject.toml", "pyproject.toml", words),
        _write(folder / "experiment.toml", f"{kind}experiment.toml", words),
        _write(app / "data.py", f"{kind}data.py", words),
        *([_write(app / "model.py", "torch_model.py", words)] if torch else []),
        _write(app / "server_app.py", "server_app.py", words),
        _write(app / "client_app.py", "client_app.py", words),
    ]
    (app / "__init__.py").write_text("")
    return written


def _write(file: Path, name: str, words: dict[str, str]) -> Path:
    template = files("asyncfed.flower").joinpath("template", f"{name}.txt").read_text()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(template).substitute(words))
    except OSError as error:
        raise ConfigError(f"{file} cannot be written ({error.strerror}). Name another folder.") from error
    return file
