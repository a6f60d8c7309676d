"""Without Flower, its room can be neither imported nor tested; `make test-flower` does both."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("flwr") else ["src/asyncfed/flower/*", "tests/flower"]
