"""The connection to a Ray cluster, and its nodes. They must compute with the same code as this process."""

from __future__ import annotations

import logging
import os
import socket
import time
from types import TracebackType
from typing import Any, NamedTuple

from asyncfed.cluster.node_check import differences, make_report
from asyncfed.core.errors import ConfigError

AUTO = "auto"
CONNECT_SECONDS = 5.0
"""How long somebody has to answer at the address."""

HEAD_ATTEMPTS = 3
"""How often the head node is called, a second apart, before it counts as gone."""

CHECK_SECONDS = 60.0
"""How long a node has to say what it computes with: it starts a process for that."""

_START = (
    "Start one with `ray start --head --disable-usage-stats` and further nodes with `ray start --address=HOST:PORT`; "
    "see docs/cluster.md."
)


def load_ray() -> Any:
    """The package Ray; a `ConfigError` if it is not installed."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # nodes have their own environments
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            f"A cluster needs Ray, which is not installed ({error}). Install it with: pip install 'asyncfed[ray]'"
        ) from error
    return ray


class Node(NamedTuple):
    """A node of the cluster.

    Args:
        id: Ray's name for it.
        address: its IP address.
        cpus: how many CPUs it offers, 0 or more.
        resources: the names of what else it offers.
    """

    id: str
    address: str
    cpus: float
    resources: frozenset[str] = frozenset()


class Connection:
    """A process is connected to one cluster at a time; use it in a `with` statement.

    A script that is connected already, by `ray.init`, stays so; its connection is used and is not closed.

    Args:
        address: `HOST:PORT` of the head node, or "auto" for the cluster that `RAY_ADDRESS` names or that runs here.

    Raises:
        ConfigError: Ray is not installed, nobody answers, or a node computes with other code.
    """

    def __init__(self, address: str = AUTO) -> None:
        self.ray = load_ray()
        self._own = not self.ray.is_initialized()
        self._ours = make_report()()
        self._good: set[str] = set()
        if self._own:
            self._connect(address)
        try:
            self.address: str = self.ray.get_runtime_context().gcs_address
            if address not in (AUTO, self.address) and not self._own:
                raise ConfigError(
                    f"This process is connected to the cluster {self.address} already, and cannot use {address} too. "
                    "Call ray.shutdown() first, or close the other Cluster."
                )
            self.check_nodes()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; what this process started there ends."""
        if self._own and self.ray.is_initialized():
            self.ray.shutdown()

    def head_answers(self) -> bool:
        """Whether the head node is there. Without it Ray's calls wait, and Ray ends this process after a minute."""
        host, _, port = self.address.rpartition(":")
        for attempt in range(HEAD_ATTEMPTS):
            if attempt:
                time.sleep(1.0)
            try:
                socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
                return True
            except OSError:
                continue
        return False

    def nodes(self) -> list[Node]:
        """The nodes that are alive, in the order of their addresses."""
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        found = [
            Node(n["NodeID"], n["NodeManagerAddress"], float(n["Resources"].get("CPU", 0)), frozenset(n["Resources"]))
            for n in alive
        ]
        return sorted(found, key=lambda node: (node.address, node.id))

    def check_nodes(self) -> list[Node]:
        """The nodes that are alive; a `ConfigError` names those that compute with other code, and how."""
        nodes = self.nodes()
        asked = {node: self._ask(node) for node in nodes if node.id not in self._good and node.cpus > 0}
        wrong = []
        for node, reply in asked.items():
            try:
                other = differences(self._ours, self.ray.get(reply, timeout=CHECK_SECONDS))
            except self.ray.exceptions.RayError as error:
                if node.id not in {other.id for other in self.nodes()}:  # it died meanwhile
                    nodes.remove(node)
                    continue
                other = [f"no answer ({str(error).splitlines()[0]})"]
            if other:
                wrong.append(f"node {node.address}: {', '.join(other)}")
            else:
                self._good.add(node.id)
        if wrong:
            raise ConfigError(
                f"Results would depend on who computes: {'; '.join(wrong)}. Install the same versions of Python, "
                "AsyncFed and what it needs on every node, then start these nodes again."
            )
        return nodes

    def pinned_to(self, node: Node) -> Any:
        """Ray's scheduling strategy for what must run on this node."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node.id, soft=False)

    def _ask(self, node: Node) -> Any:
        report = self.ray.remote(make_report())
        return report.options(num_cpus=0, max_retries=0, scheduling_strategy=self.pinned_to(node)).remote()

    def _connect(self, address: str) -> None:
        if address != AUTO:
            _check_reachable(address)
        try:
            self.ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError as error:
            raise ConfigError(f"There is no Ray cluster at {address!r} ({error}). {_START}") from error
        except (RuntimeError, ValueError, self.ray.exceptions.RayError) as error:
            raise ConfigError(
                f"Ray refuses the connection to {address!r}: {error}. The same versions of Ray and Python are needed "
                "everywhere, and with RAY_AUTH_MODE=token the cluster's token."
            ) from error


def _check_reachable(address: str) -> None:
    """Ray itself would try for a long time, and its error says little."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise ConfigError(f'The cluster\'s address is "{address}"; it must be HOST:PORT of the head node, or "auto".')
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(f"Nobody answers at {address} ({error}). {_START}") from error
