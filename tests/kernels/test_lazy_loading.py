"""The compiled loops are loaded when one is first needed, not by whoever describes an experiment."""

import subprocess
import sys
from pathlib import Path

import asyncfed

PACKAGE = Path(asyncfed.__file__).parent

SCRIPT = """
import sys
import asyncfed as af
experiment = af.replace(af.presets.regression(), budget=af.Budget(rounds=1))
problem = experiment.problem()
problem.fingerprint(), problem.num_examples, problem.init(0, how="torch"), problem.parts
assert "numba" not in sys.modules, "a description needs numba"
af.run(experiment, problem=problem)
assert "numba" in sys.modules, "this test looks for the wrong name"
"""

HEAVY = """
import sys, types
sys.modules["asyncfed"] = types.ModuleType("asyncfed")
sys.modules["asyncfed"].__path__ = [{package!r}]
import asyncfed.problems, asyncfed.rules, asyncfed.uplinks, asyncfed.kernels.losses, asyncfed.kernels.threads
loaded = set(sys.modules).intersection(["numba", "scipy", "torch", "safetensors"])
assert not loaded, loaded
"""


def check(script):
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def test_numba_is_loaded_by_the_first_training_and_not_before():
    check(SCRIPT)


def test_problems_rules_and_losses_load_nothing_heavy():
    """Without the package's own `__init__`, which hands on names of all rooms."""
    check(HEAVY.format(package=str(PACKAGE)))
