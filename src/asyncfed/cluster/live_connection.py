"""The connection of a live run to a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import ray

from asyncfed.cluster.live_placement import Node
from asyncfed.core.errors import ConfigError

BUILT_IN = ("CPU", "GPU", "memory", "object_store_memory")


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Connect this process to the cluster at `address` for as long as the block lasts; one that is connected stays so.

    What clients print stays on their nodes: it may hold their data.
    """
    if ray.is_initialized():
        yield
        return
    host = address.rpartition(":")[0]
    more = {"_node_ip_address": host} if host.startswith("127.") else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **more)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"There is no Ray cluster at {address!r}: {error}. Start one with `ray start --head`."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def alive_nodes() -> list[Node]:
    """The nodes that are there now."""
    return [
        Node(node["NodeID"], node["NodeManagerAddress"], _custom_resources(node["Resources"]))
        for node in ray.nodes()
        if node["Alive"]
    ]


def _custom_resources(resources: dict[str, float]) -> frozenset[str]:
    return frozenset(name for name in resources if name not in BUILT_IN and not name.startswith("node:"))
