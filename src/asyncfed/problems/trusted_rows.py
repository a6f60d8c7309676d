"""Rows of the server's own, which it trusts: drawn from the clients' training rows, or read from a file."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable
from zipfile import BadZipFile

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.problems.objective import is_sparse
from asyncfed.problems.protocol import Array, ClientShard, PackedData, Problem
from asyncfed.registry import declare_part, register


@runtime_checkable
class TakesRows(Protocol):
    """A problem that can be given rows of nobody's, to train on them as a client would."""

    def shard_of(self, x: Array, y: Array) -> ClientShard:
        """A client's part with these rows."""
        ...


@runtime_checkable
class TrustedData(Protocol):
    """The `trusted` of an experiment: which rows the server holds and trusts.

    `shard(problem, seed)` makes what can be trained on them; the same arguments must give the same rows. One whose rows
    are nobody else's says so with `draws_from_clients = False`.
    """

    def shard(self, problem: Problem, seed: int) -> ClientShard: ...


declare_part("trusted", TrustedData)


def draws_from_clients(trusted: TrustedData) -> bool:
    """Whether these rows are clients' own too; so it is taken to be where they do not say."""
    return bool(getattr(trusted, "draws_from_clients", True))


@register("trusted")
class TrustedRows(Config, tag_field="kind", tag="rows"):
    """So many of the clients' training rows, drawn by the seed: what papers give a server that trusts some data.

    All rows of all honest clients are equally likely, and none is drawn twice. Clients keep and train on their rows.
    For simulations and live runs on one machine, where the rows are at hand.

    Args:
        rows: how many, 1 or more.

    >>> TrustedRows(rows=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: trusted.rows is 0; it must be at least 1 row.
    """

    rows: int = 100

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ConfigError(f"trusted.rows is {self.rows}; it must be at least 1 row.")

    def shard(self, problem: Problem, seed: int) -> ClientShard:
        """A client's part with the rows that were drawn."""
        liars, problem = liars_in(problem), rows_at_hand(problem)
        packed = cast("PackedData | None", getattr(problem, "clients", None))
        if packed is None:
            raise ConfigError(
                f"trusted draws {self.rows} of the clients' rows, which {type(problem).__name__} does not hold. "
                'Name a file of the server\'s own: trusted = {kind = "file", file = "trusted.npz"}.'
            )
        candidates = _rows_of(packed.offsets, liars)
        if self.rows > len(candidates):
            raise ConfigError(
                f"trusted.rows is {self.rows}, but the honest clients have {len(candidates)} rows in all. Set it lower."
            )
        rng, moved, chosen = Stream(purpose_key(seed, "trusted rows")), dict[int, int](), []
        for place in range(self.rows):  # a Fisher-Yates shuffle, of which only the first places are made
            other = place + rng.below(len(candidates) - place)
            chosen.append(moved.get(other, other))
            moved[other] = moved.get(place, place)
        rows = candidates[np.sort(np.array(chosen, np.int64))]
        x = packed.x if is_sparse(packed.x) else np.asarray(packed.x)
        return _takes_rows(problem).shard_of(x[rows], np.asarray(packed.y)[rows])


@register("trusted")
class TrustedFile(Config, tag_field="kind", tag="file"):
    """Rows in a file of the server's own, as clients train on them: the same columns, in the same order, as numbers.

    A `.npz` file holds the arrays `x` (rows, columns) and `y` (rows,). A `.csv` file has a line of names, then a line
    of numbers for each row, the target in the last column. Nothing is scaled or filled in. The file is read when a run
    begins, is continued or is verified; with `sha256`, another content is refused.

    Args:
        file: its path, as the server sees it.
        sha256: the fingerprint of its bytes; left out, it is not checked.

    >>> TrustedFile(file="rows.xls")
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: trusted.file is "rows.xls"; it must end in .npz or .csv.
    """

    file: str
    sha256: str | UnsetType = UNSET
    draws_from_clients = False

    def __post_init__(self) -> None:
        if not self.file.endswith((".npz", ".csv")):
            raise ConfigError(f'trusted.file is "{self.file}"; it must end in .npz or .csv.')

    def shard(self, problem: Problem, seed: int) -> ClientShard:
        """A client's part with the rows of the file."""
        x, y, problem = *self._read(), rows_at_hand(problem)
        if x.ndim < 2 or len(x) != len(y) or len(x) < 1:
            raise DataError(f"{self.file} has x of shape {x.shape} and y of shape {y.shape}; they need a row for each.")
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise DataError(f"{self.file} holds numbers that are not finite. Fill them in, or leave their rows out.")
        shard = _takes_rows(problem).shard_of(x, y)
        alone = getattr(shard, "num_params", None)
        if alone is not None and alone != problem.num_params:
            raise DataError(
                f"{self.file} has {x.shape[1]} columns of features, with which the model has {alone} params; the "
                f"clients' has {problem.num_params}. Give it the clients' columns."
            )
        return shard

    def _read(self) -> tuple[Array, Array]:
        path = Path(self.file)
        try:
            content = path.read_bytes()
            if path.suffix == ".csv":
                table = np.loadtxt(BytesIO(content), delimiter=",", skiprows=1, ndmin=2)
                x, y = table[:, :-1], table[:, -1]
            else:
                with np.load(BytesIO(content), allow_pickle=False) as arrays:
                    x, y = arrays["x"], arrays["y"]
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise DataError(
                f"trusted.file {path} cannot be read: {error}. See asyncfed.problems.TrustedFile."
            ) from error
        if self.sha256 is not UNSET and sha256(content).hexdigest() != self.sha256:
            raise DataError(f"{path} is not the file that trusted.sha256 names; restore it, or leave sha256 out.")
        return x, y


def rows_at_hand(problem: Problem) -> Problem:
    """The problem itself, without what is around it: workers that share its trainings, clients that lie.

    Whoever trains on a client's rows by it trains on its true rows, and honestly.
    """
    inner = getattr(problem, "inner", None)
    return problem if inner is None else rows_at_hand(inner)


def liars_in(problem: Problem) -> set[int]:
    """The clients of a problem that are known to lie."""
    coalition = getattr(problem, "coalition", None)
    return set() if coalition is None else set(coalition.members)


def _rows_of(offsets: Any, liars: set[int]) -> Array:
    """The numbers of all rows that do not belong to one of these clients."""
    bounds = np.asarray(offsets, np.int64).tolist()
    parts = [np.arange(a, b) for c, (a, b) in enumerate(pairwise(bounds)) if c not in liars]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _takes_rows(problem: Problem) -> TakesRows:
    if not isinstance(problem, TakesRows):
        raise ConfigError(
            f"{type(problem).__name__} cannot be trained on rows of the server's own. Give it `shard_of(x, y)`, see "
            "asyncfed.problems.TakesRows, or name a trusted_client."
        )
    return problem
