"""Whether every node of a cluster computes with the same code as this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

MISSING = "not installed"

COMPARED = ("python", "asyncfed", "ray", "numpy", "scipy", "numba", "torch")


def make_report() -> Callable[[], dict[str, str]]:
    """A function that says what the process it runs in computes with.

    It is made inside another one and imports all it needs, so that Ray sends its code: a node that has no AsyncFed
    could not look it up by its name.
    """

    def report() -> dict[str, str]:
        import hashlib
        import importlib.util
        import platform
        from importlib.metadata import PackageNotFoundError, version
        from pathlib import Path

        missing = "not installed"
        found = {"python": ".".join(platform.python_version_tuple()[:2])}
        for name in ("ray", "numpy", "scipy", "numba", "torch"):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = missing
        spec = importlib.util.find_spec("asyncfed")
        if spec is None or spec.origin is None:
            found["asyncfed"] = missing
        else:
            package, digest = Path(spec.origin).parent, hashlib.sha256()
            for file in sorted(package.rglob("*.py")):
                digest.update(file.relative_to(package).as_posix().encode())
                digest.update(file.read_bytes())
            found["asyncfed"] = f"source {digest.hexdigest()[:12]}"
        return found

    return report


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """What a node has otherwise than this process, in words; torch counts only where both have it.

    >>> differences({"numpy": "2.1", "torch": "2.6"}, {"numpy": "2.0", "torch": "not installed"})
    ['numpy 2.0 (here 2.1)']
    """
    found = []
    for name in COMPARED:
        here, there = ours.get(name, MISSING), theirs.get(name, MISSING)
        if here == there or (name == "torch" and MISSING in (here, there)):
            continue
        found.append(f"{'AsyncFed' if name == 'asyncfed' else name} {there} (here {here})")
    return found
