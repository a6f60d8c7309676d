"""TOML files: experiments with keys changed, text changed, and shapes that parsers dislike."""

from tests.fuzzing.values import NUMBERS, WORDS, any_value, with_flipped_bytes, with_one_change

import asyncfed as af

PATHOLOGICAL = (
    lambda n: "x = " + "[" * n + "]" * n,
    lambda n: "x = " + "{a = " * n + "1" + "}" * n,
    lambda n: ".".join(["a"] * n) + " = 1",
    lambda n: "strategy." + ".".join(["a"] * n) + " = 1",
    lambda n: "[" + ".".join(["a"] * n) + "]",
    lambda n: "[[" + ".".join(["a"] * n) + "]]",
    lambda n: "x = { " + " . ".join(['"a b"'] * n) + " = 1 }",
    lambda n: "".join(f"[a{k}.b]\n" for k in range(n)),
    lambda n: "seed = " + "9" * n,
    lambda n: "seed = 0x" + "f" * n,
    lambda n: "seed = -0.1e" + "9" * n,
    lambda n: 'name = "' + "\\u0041" * n + '"',
    lambda n: "data = " + "[" * n + "]" * n,
    lambda n: "churn = [" + "{}," * n + "]",
    lambda n: "'" * n,
    lambda n: '"""' + '"' * n,
    lambda n: "#" * n,
    lambda n: "a" * n,
    lambda n: "x = " + "1," * n,
    lambda n: "x = 1979-05-27T07:32:00" + "0" * n,
)


def broken_toml(rng, folder, experiments):
    """The arguments of a command that reads a file which was just written."""
    file = folder / "broken.toml"
    sort = rng.choice((0, 1, 2, 3, 3, 3))
    if sort == 0:
        text = rng.choice(PATHOLOGICAL)(rng.choice((3, 600, 5000, 50_000)))
        file.write_text(text)
    elif sort == 1:
        file.write_bytes(with_flipped_bytes(rng, af.to_toml(rng.choice(experiments)).encode()))
    elif sort == 2:
        lines = af.to_toml(rng.choice(experiments)).splitlines()
        place = rng.randrange(len(lines))
        key = lines[place].partition("=")[0]
        lines[place] = rng.choice((lines[rng.randrange(len(lines))], f"{key} = {toml_value(rng)}", any_line(rng)))
        file.write_text("\n".join(lines))
    else:
        file.write_text(to_toml(with_one_change(rng, af.experiment.to_plain(rng.choice(experiments)))))
    return ["run", str(file), "--rounds", "2", "--out", str(folder / "run.sqlite"), "--force"]


def toml_value(rng):
    """A value as TOML writes it, mostly."""
    return value_text(any_value(rng)) or rng.choice(("", "=", "[", "1979-05-27", "07:32:00", "0b12", "+nan", "'''"))


def any_line(rng):
    return rng.choice(
        ("[]", "[strategy]", "[[churn]]", "= 3", "a.b.c = {}", f"{rng.choice(WORDS)} = {rng.choice(NUMBERS)}")
    )


def value_text(value):
    if value is None or isinstance(value, dict):
        return "{" + ", ".join(f'"k{n}" = {value_text(v)}' for n, v in enumerate((value or {}).values())) + "}"
    if isinstance(value, list | tuple):
        depth, inner = 0, list(value)
        while isinstance(inner, list) and len(inner) == 1:
            depth, inner = depth + 1, inner[0]
        if not isinstance(inner, list):
            return "[" * depth + value_text(inner) + "]" * depth
        return "[" * depth + "[" + ", ".join(map(value_text, inner)) + "]" + "]" * depth
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower()


def to_toml(plain):
    """TOML of any plain values, valid or not: the project's own writer refuses what it cannot write."""
    if not isinstance(plain, dict):
        return value_text(plain)
    simple = {k: v for k, v in plain.items() if not isinstance(v, dict) and v is not None}
    lines = [f"{key} = {value_text(value)}" for key, value in simple.items()]
    return "\n".join(lines + _tables(plain, ""))


def _tables(plain, prefix):
    lines = []
    for key, value in plain.items():
        if isinstance(value, dict):
            name = prefix + (key if key.isidentifier() else '"k"')
            lines.append(f"[{name}]")
            lines += [f"{k} = {value_text(v)}" for k, v in value.items() if not isinstance(v, dict) and v is not None]
            lines += _tables(value, f"{name}.")
    return lines
