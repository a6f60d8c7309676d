# Two commands matter: `make demo` and `make test`. Both set everything up by themselves.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PIP := $(BIN)/pip --disable-pip-version-check -q install -c constraints.txt

.PHONY: demo test test-slow lint bench clean

# torch goes in first and pinned: see constraints.txt.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) torch==2.13.0
	$(PIP) -e ".[dev]"
	touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py $(DEMO)

test: $(STAMP)
	$(BIN)/pytest -n 2 -m "not slow" $(PYTEST)

test-slow: $(STAMP)
	$(BIN)/pytest -n 2 -m slow $(PYTEST)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(BENCH)

clean:
	rm -rf .venv runs build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
