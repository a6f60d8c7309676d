# Two commands matter: `make demo` and `make test`. Both set everything up by themselves.
PYTHON ?= python3
BIN := .venv/bin
DEMO_STAMP := .venv/.installed-for-demo
STAMP := .venv/.installed
PIP := $(BIN)/pip --disable-pip-version-check -q install -c constraints.txt

# Keep what Python compiles: the tests start some hundred interpreters.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo arena robustness communication audit-privacy test test-slow test-flower test-ray lint bench bench-rivals soak clean

# What the demo needs and nothing else: no PyTorch, no Flower, none of the tools.
$(DEMO_STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

# torch goes in first and pinned: see constraints.txt.
$(STAMP): $(DEMO_STAMP)
	$(PIP) torch
	$(PIP) -e ".[dev]"
	touch $@

demo: $(DEMO_STAMP)
	$(BIN)/python examples/demo.py $(DEMO)

arena: $(STAMP)
	$(BIN)/asyncfed arena $(ARENA)

robustness: $(STAMP)
	$(BIN)/asyncfed robustness $(ROBUSTNESS)

# The claims of every mode must stand, and must fall when half of the noise is missing.
audit-privacy: $(STAMP)
	$(BIN)/asyncfed privacy canaries --runs 5000 --confidence 0.99 $(AUDIT)
	for mode in central tree local; do \
	  $(BIN)/asyncfed privacy canaries --mode $$mode --runs 1000 --confidence 0.99 --noise-fraction 0.5 \
	    --out-dir runs/canaries-halved; [ $$? -eq 1 ] || exit 1; done

communication: $(STAMP)
	$(BIN)/asyncfed communication $(COMMUNICATION)

test: $(STAMP)
	$(BIN)/pytest -n 2 -m "not slow and not flower and not ray" $(PYTEST)

test-slow: $(STAMP)
	$(BIN)/pytest -n 2 -m "slow and not flower and not ray" $(PYTEST)

# Flower pins many packages, and older versions of some than we would take, so it lives in an environment of its own,
# with PyTorch, whose modules are tested on a federation. There the command line is tested once more, with those.
.venv-flower/.installed: pyproject.toml constraints.txt
	test -x .venv-flower/bin/python || $(PYTHON) -m venv .venv-flower
	.venv-flower/bin/pip --disable-pip-version-check -q install -c constraints.txt torch
	.venv-flower/bin/pip --disable-pip-version-check -q install -c constraints.txt -e ".[flower,report,torch]" pytest hypothesis
	touch $@

test-flower: .venv-flower/.installed
	.venv-flower/bin/pytest -m "flower or not slow" tests/flower tests/cli --durations=3 $(PYTEST)

# Ray needs other versions of what Flower's simulation needs, so it has an environment of its own too, with PyTorch.
.venv-ray/.installed: pyproject.toml constraints.txt
	test -x .venv-ray/bin/python || $(PYTHON) -m venv .venv-ray
	.venv-ray/bin/pip --disable-pip-version-check -q install -c constraints.txt torch
	.venv-ray/bin/pip --disable-pip-version-check -q install -c constraints.txt -e ".[ray,torch,data,advise]" pytest hypothesis
	touch $@

test-ray: .venv-ray/.installed
	.venv-ray/bin/pytest -m "ray" tests/cluster --durations=3 $(PYTEST)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(BENCH)

# Makes an environment for each rival (some 10 GB in all, below .venv-rivals) and runs them in turn with AsyncFed.
bench-rivals: $(STAMP)
	$(BIN)/python -m benchmarks.rivals $(RIVALS)

# An hour: a long live run, and one that is killed every minute. SOAK=--quick takes two minutes.
soak: $(STAMP)
	$(BIN)/python -m benchmarks.soak $(SOAK)

clean:
	rm -rf .venv .venv-flower .venv-ray .venv-rivals runs build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
