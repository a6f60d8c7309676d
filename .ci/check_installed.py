"""Is the AsyncFed that is installed here complete, and does it work? `python check_installed.py SOURCE_FOLDER`."""

import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import asyncfed as af

COMPILED = {".pyc", ".nbi", ".nbc", ".so"}


def main() -> None:
    source, installed = Path(sys.argv[1]), Path(af.__file__).parent
    if installed.resolve() == source.resolve():
        sys.exit(f"asyncfed is imported from {source}, not from an installed wheel; start this in another folder.")
    files = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix not in COMPILED}
    missing = sorted(str(file) for file in files if not (installed / file).exists())
    if missing:
        sys.exit(f"The wheel lacks {', '.join(missing)}; see package-data in pyproject.toml.")
    shown = output("asyncfed", "--version")
    if shown.split() != ["asyncfed", af.__version__] or version("asyncfed") != af.__version__:
        sys.exit(f"Versions differ: {shown!r}, {version('asyncfed')} in the metadata, {af.__version__} in version.py.")
    run = af.run(af.presets.regression(strategy="fedbuff", delays=af.delays.stragglers(), rounds=10), progress=False)
    if run.verdict != "finished":
        sys.exit(f"A small simulation ended as {run.verdict}: {run.reason}.")
    output("asyncfed", "run", "svm", "--rounds", "5", "--out", "run.sqlite")
    if "verified" not in output("asyncfed", "verify", "run.sqlite"):
        sys.exit("A run that was just made does not verify.")
    print(f"Python {platform.python_version()}: asyncfed {af.__version__} is complete ({len(files)} files) and works")


def output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
