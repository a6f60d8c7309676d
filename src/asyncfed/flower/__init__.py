"""AsyncFed on Flower: a ServerApp and a ClientApp for any experiment, and a federation on this machine to try them.

    # server_app.py                                          # client_app.py
    from asyncfed.flower import server_app              from asyncfed.flower import client_app
    app = server_app(experiment)                             app = client_app(experiment)

Flower is an extra: pip install 'asyncfed[flower]'. It is imported in this room and nowhere else.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncfed.core.errors import ConfigError
from asyncfed.experiment import Experiment, read_toml

if TYPE_CHECKING:
    from asyncfed.flower.local_federation import Federation
    from asyncfed.flower.node_program import LoadData
    from asyncfed.flower.node_registry import LoadTest

__all__ = ["certificates", "client_app", "federation", "node_key", "server_app"]


def server_app(experiment: Experiment | Path | str, *, test_data: LoadTest | None = None) -> Any:
    """Flower's ServerApp for this experiment, given itself or as a TOML file.

    With `test_data() -> (x, y)`, the data are the nodes' own and the server measures the model on these rows; without,
    they are generated as the experiment says, on each node its own client's.
    """
    _require_flower()
    from asyncfed.flower.server_program import make_server_app

    return make_server_app(_read(experiment), test_data)


def client_app(experiment: Experiment | Path | str, *, data: LoadData | None = None) -> Any:
    """Flower's ClientApp: `data(client, node_settings) -> (x, y)` loads what this node holds, and only that."""
    _require_flower()
    from asyncfed.flower.node_program import make_client_app

    return make_client_app(_read(experiment), data)


def federation(folder: Path, num_nodes: int, *, restart_proof: bool = False, port: int | None = None) -> Federation:
    """A SuperLink and SuperNodes on this machine, not yet started."""
    _require_flower()
    from asyncfed.flower.local_federation import Federation

    return Federation(folder, num_nodes, restart_proof=restart_proof, port=port)


def certificates(folder: Path, hosts: tuple[str, ...]) -> None:
    """`ca.crt`, `server.crt` and their keys, for a SuperLink that nodes know by these names and addresses."""
    _require_flower()
    from asyncfed.flower.credentials import make_certificates

    make_certificates(folder, hosts)


def node_key(file: Path) -> Path:
    """A node's private key; the answer is the file of the public one."""
    _require_flower()
    from asyncfed.flower.credentials import make_node_key

    if file.exists():
        raise ConfigError(f"{file} is there already, and a key that is lost is lost; nothing was written.")
    return make_node_key(file)


def _read(experiment: Experiment | Path | str) -> Experiment:
    return experiment if isinstance(experiment, Experiment) else read_toml(experiment)


def _require_flower() -> None:
    if find_spec("flwr") is None:
        raise ConfigError("Flower is not installed here. Install it with: pip install 'asyncfed[flower]'")
