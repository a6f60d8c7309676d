"""The option --cluster: other machines, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asyncfed.cli.output import complaints, print_note
from asyncfed.core.errors import ConfigError

if TYPE_CHECKING:
    from asyncfed.cluster.ray_cluster import Cluster


@contextmanager
def chosen_cluster(address: str | None, workers: int | None) -> Iterator[Cluster | None]:
    """The cluster at that address, while a command computes; None if none was named."""
    if address is None:
        yield None
        return
    with complaints.status(f"connecting to the cluster {address}"):
        from asyncfed.cluster.ray_cluster import Cluster  # while it is said: it takes a while

        cluster = Cluster(address, workers, notify=_notify)
    with cluster:
        print_note(cluster.describe())
        yield cluster


def who_works(cluster: Cluster | None) -> Callable[[], str] | None:
    """A function that says how many actors compute at the moment; None without a cluster."""
    if cluster is None:
        return None

    def text() -> str:
        at_work = cluster.at_work
        return f"{sum(at_work.values())} actors on {len(at_work)} nodes"

    return text


def need_cluster(workers: int | None, cluster: str | None) -> None:
    """Refuse a number of actors without a cluster."""
    if workers is not None and cluster is None:
        raise ConfigError(
            f"--workers {workers} is for --cluster; on one machine, --threads says how many train at once."
        )


def _notify(sentence: str) -> None:
    complaints.print(f"cluster: {sentence}", highlight=False, markup=False)
