"""A stand-in for torchvision: every module and name some rivals import from it, and none of what they do.

No workload here has images, and torchvision must match torch to the build, so that it cannot be had wherever torch can.
Using a name, other than importing it or deriving a class from it, is an error that says so.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

__version__ = "0.28.0+stand.in"


def _named(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Names(name, (NotThere,), {})


class _Names(type):
    """Classes that have classes of any name in them, since some rivals reach two levels down."""

    def __getattr__(cls, name):
        return _named(name)


class NotThere(metaclass=_Names):
    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"torchvision's {type(self).__name__} is only a stand-in here; install torchvision itself.")


class _AnyModule(MetaPathFinder, Loader):
    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self, is_package=True) if fullname.startswith(f"{__name__}.") else None

    def exec_module(self, module):
        module.__getattr__ = _named


sys.meta_path.append(_AnyModule())

from torchvision import datasets, io, models, ops, transforms, utils  # noqa: E402, F401
