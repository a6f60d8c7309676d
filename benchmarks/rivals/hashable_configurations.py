"""Lets FLSim be imported by Python 3.11 and later: import this module before it.

Its configurations are defaults of each other's fields. From 3.11 on, dataclasses refuse defaults that cannot be hashed;
so those of FLSim, and no others, are made hashable.
"""

from __future__ import annotations

import dataclasses
from typing import Any

_dataclass = dataclasses.dataclass


def hashable_if_of_flsim(cls: Any = None, /, **options: Any) -> Any:
    def decorate(cls: Any) -> Any:
        if cls.__module__.startswith("flsim."):
            options["unsafe_hash"] = True
        return _dataclass(cls, **options)

    return decorate if cls is None else decorate(cls)


dataclasses.dataclass = hashable_if_of_flsim
