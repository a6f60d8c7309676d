"""What AsyncFed offers: the public modules, the objects each one exports, and where each is documented."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

MODULES = (
    *("asyncfed", "asyncfed.data", "asyncfed.delays", "asyncfed.errors", "asyncfed.presets", "asyncfed.problems"),
    *("asyncfed.registry", "asyncfed.strategies", "asyncfed.testing"),
    "asyncfed.theory.bounds",
)
"""Everything in these explains itself and each of its arguments; `tests/test_public_api.py` sees to it."""

MORE_MODULES = ("asyncfed.attacks", "asyncfed.privacy", "asyncfed.rules", "asyncfed.sklearn", "asyncfed.uplinks")
"""These are in the reference too."""


def exported(name: str) -> list[tuple[str, Any]]:
    """The names that a module offers, with what they stand for."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [n for n, v in vars(module).items() if not n.startswith("_") and getattr(v, "__module__", "") == name]
    return [(n, getattr(module, n)) for n in names]


def explains_itself(value: Any) -> bool:
    """Whether it is a class or a function of ours, which has a docstring."""
    return (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("asyncfed")


def full_name(value: Any) -> str:
    """Where a class or function is defined."""
    return f"{value.__module__}.{value.__qualname__}"


def public_objects() -> dict[str, Any]:
    """Every public class and function of `MODULES`, by the place where it is defined."""
    return {full_name(value): value for module in MODULES for _, value in exported(module) if explains_itself(value)}
