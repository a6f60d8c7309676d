"""The PyTorch examples in their short form say what lies beside them.

Another processor may round a product differently, and hundreds of steps later a percentage differs in its last digits:
so the words must be the same, and the numbers nearly.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.mark.parametrize(
    ("name", "arguments", "picture"),
    [
        pytest.param("own_module", [], "circle.safetensors", marks=pytest.mark.slow),
        pytest.param("wind_lstm", ["--quick"], "wind_lstm.png", marks=pytest.mark.slow),
        pytest.param("digits_cnn", ["--quick"], "digits_cnn.png", marks=pytest.mark.slow),
    ],
)
def test_the_example_prints_what_lies_beside_it(name, arguments, picture, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    if name == "digits_cnn":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = (EXAMPLES / f"{name}.out").read_text()
    assert NUMBER.sub("#", done.stdout).split() == NUMBER.sub("#", shown).split()
    printed, expected = ([float(n) for n in NUMBER.findall(text)] for text in (done.stdout, shown))
    assert printed == pytest.approx(expected, rel=0.2, abs=0.05)
    if name == "digits_cnn":
        assert max(float(percent) for percent in re.findall(r"([\d.]+) % \(", done.stdout)) > 95
    assert (tmp_path / picture).stat().st_size > 100
