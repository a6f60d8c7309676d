"""Command lines: every command with options of its own that have odd values, taken from the command line itself."""

from importlib.util import find_spec

from tests.fuzzing.outcome import built_command_line
from tests.fuzzing.values import WORDS

import asyncfed as af

STARTS_PROCESSES = {"live", "up"}
"""Commands that start processes are given an experiment, or a number of nodes, that cannot be."""

TAKES_LONG = {"reproduce", "advise", "arena", "fairness", "robustness", "communication"}
"""Commands whose smallest valid use takes more than a moment are given an option that does not exist."""


DRAWS = {"report", "compare", "certify"}
"""Commands that take a second or more, most of it for drawing, are tried less often."""


def odd_command(rng, folder, experiments, run_file):
    """A command with some of its arguments and options, each sensible or odd."""
    path, command = rng.choice(commands())
    if path[-1] in DRAWS and rng.random() < 0.8:
        path, command = rng.choice(commands())
    name = path[-1]
    arguments = list(path)
    (folder / "small.toml").write_text(af.to_toml(rng.choice(experiments)))
    sensible = {
        "experiment": str(folder / "small.toml"), "file": str(run_file), "files": str(run_file),
        "seeds": "1", "rounds": "1", "workers": "1", "strategies": "fedbuff,sync",
    }  # fmt: skip
    for parameter in command.params:
        is_option = parameter.opts[0].startswith("-")
        needed = not is_option or parameter.name in ("seeds", "rounds", "workers", "strategies")
        if parameter.name in ("help", "out", "out_dir", "folder", "version", "timeline", "plot") and is_option:
            if parameter.name in ("out", "out_dir", "folder"):
                arguments += [parameter.opts[-1], str(folder / rng.choice(("out", "out.sqlite", "small.toml")))]
            continue
        if not needed and rng.random() > 0.15:
            continue
        odd = rng.random() < (0.12 if needed else 0.6)
        value = odd_value(rng, folder) if odd else sensible.get(parameter.name, odd_value(rng, folder))
        if name in STARTS_PROCESSES and parameter.name in ("experiment", "nodes"):
            value = rng.choice(("none.toml", "nothing", "-1"))
        if is_option and getattr(parameter, "is_flag", False):
            arguments.append(parameter.opts[0])
        elif is_option:
            arguments += [parameter.opts[-1], value]
        else:
            arguments.append(value)
    if name == "up":
        arguments += ["--nodes", rng.choice(("0", "-3", "x"))]
    if name == "live":
        arguments += ["--preset", "nothing"] if rng.random() < 0.5 else ["--set", "seed=-1"]
    if name in TAKES_LONG:
        arguments.append("--no-such-option")
    return [argument.replace("\x00", "") for argument in arguments]


def commands():
    """Every command of the command line, with the words that name it."""
    found = []

    def collect(group, path):
        for name, command in sorted(group.commands.items()):
            collect(command, [*path, name]) if hasattr(command, "commands") else found.append(([*path, name], command))

    collect(built_command_line(), [])
    return [entry for entry in found if entry[0][0] != "flower" or find_spec("flwr")]


def odd_value(rng, folder):
    numbers = ("0", "-1", "1.5", "nan", "inf", "1e400", str(2**63), "9" * 5000)
    files = (str(folder), str(folder / "none.csv"), str(folder / "small.toml"), "/dev/null/x", "none.sqlite")
    return rng.choice((rng.choice(WORDS), rng.choice(numbers), rng.choice(files), "afl,afl", "text", "theory", "="))
