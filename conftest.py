"""Which files are collected, and how the workers share the tests.

Without Flower, its room can be neither imported nor tested; `make test-flower` does both. So it is with Ray and
`make test-ray`.
"""

import gc
from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("flwr") else ["src/asyncfed/flower/*", "tests/flower"]
if not find_spec("ray"):
    collect_ignore_glob += ["src/asyncfed/cluster/*", "tests/cluster"]


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """With `-n`, each worker has one part of the tests and takes over some of another's when it is done.

    So the tests of a file are nearly always in one worker, which makes their fixtures and compiles their kernels once.
    """
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported and collected stays to the end: the garbage collector need not look through it again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
