"""CSV files: good ones to which one or two odd things were done: cells, names, shapes, encodings, options."""

from tests.fuzzing.values import with_flipped_bytes

CELLS = (
    "", "NA", "x", "1", "0", "-1", "2.5", "1e308", "-1e200", "1e400", "nan", "inf", "1,5", '"', '"a', "'", "true",
    "2020-01-01", "2020-01-01T00:00:00+02:00", "0001-01-01", "9999-12-31", "é", "\x00", " ", "\t", "1_000", "٣", "=1+1",
    "a" * 200_000, "9" * 400, "0x10", "1 000", "1e-320", "True", "-0",
)  # fmt: skip
NAMES = ("", "y", "site", '"', "a\nb", "[x]", "1", "é", " x0", "a" * 5000)
ENCODINGS = ("utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252")
SETTINGS = (
    "holdout.validation=0.9", "holdout.test=0", "data.ignore=['y']", "data.ignore=['x0']", "data.missing=['1']",
    "data.categories=['x0']", "data.features=['x0']", "data.features=[]", "num_clients=2", "dtype=float32", "seed=7",
)  # fmt: skip


def odd_table(rng, folder):
    """The arguments of a run on a CSV file which was just written."""
    columns, count = rng.choice((3, 4, 6)), rng.choice((30, 60, 200))
    names = ["site", "y", *(f"x{k}" for k in range(columns - 2))]
    labels = rng.random() < 0.4
    rows = [[rng.choice("abc"), _target(rng, labels), *(_number(rng) for _ in names[2:])] for _ in range(count)]
    options = {"--target": "y", "--client-column": "site", "--problem": "logistic" if labels else "ridge"}
    shape = {"name": "odd.csv", "delimiter": ",", "newline": "\n", "encoding": "utf-8", "flipped": 0}
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice(CHANGES)(rng, names, rows, options, shape)
    lines = [shape["delimiter"].join(row) for row in [names, *rows]]
    content = shape["newline"].join(lines).encode(shape["encoding"], "replace")
    file = folder / shape["name"]
    file.write_bytes(with_flipped_bytes(rng, content, shape["flipped"]) if shape["flipped"] else content)
    given = [word for option in options.items() if option[1] is not None for word in option]
    return ["run", "--data", str(file), *given, "--rounds", "2", "--out", str(folder / "run.sqlite"), "--force"]


def _target(rng, labels):
    return rng.choice(("0", "1")) if labels else _number(rng)


def _number(rng):
    return f"{rng.gauss(0, 1):.3f}"


def change_cell(rng, names, rows, options, shape):
    for _ in range(rng.choice((1, 3))):
        row, place = rng.choice(rows), rng.randrange(len(names))
        row[place : place + 1] = [rng.choice(CELLS)]


def fill_column(rng, names, rows, options, shape):
    place, cell = rng.randrange(len(names)), rng.choice(CELLS)
    for row in rows:
        if len(row) > place:
            row[place] = cell


def mix_column(rng, names, rows, options, shape):
    place, cells = rng.randrange(len(names)), rng.sample(CELLS, 3)
    for row in rows:
        if len(row) > place:
            row[place] = rng.choice(cells)


def change_name(rng, names, rows, options, shape):
    names[rng.randrange(len(names))] = rng.choice(NAMES)


def change_rows(rng, names, rows, options, shape):
    del rows[rng.choice((0, 1, 2, 5, 12)) :]
    rows.append(rng.choice(([], ["a"], ["a", "1", "2", "3", "4", "5", "6"], ["a", *["1"] * (len(names) - 1)])))


def many_owners(rng, names, rows, options, shape):
    for number, row in enumerate(rows):
        row[:1] = [f"site {number // rng.choice((1, 2, 6))}"]


def change_shape(rng, names, rows, options, shape):
    part, choices = rng.choice((
        ("name", ("odd.tsv", "odd.txt", "odd.parquet", "odd", "odd.CSV", "odd.csv.gz", "odd.xlsx")),
        ("delimiter", (";", "\t", "|", " ", ",,")),
        ("newline", ("\r\n", "\r", "\n\n", "\x0b")),
        ("encoding", ENCODINGS),
        ("flipped", (1, 3, 20)),
    ))  # fmt: skip
    shape[part] = rng.choice(choices)


def change_option(rng, names, rows, options, shape):
    name, choices = rng.choice((
        ("--target", ("site", "x0", "nothing", "")),
        ("--client-column", ("y", "x0", "none", None)),
        ("--problem", ("svm", "squared_hinge", "least_squares", "logistic", "nothing", None)),
        ("--set", SETTINGS),
        ("--lr", ("1e300", "0", "nan", "1e-300", "100")),
    ))  # fmt: skip
    options[name] = rng.choice(choices)


CHANGES = (
    change_cell, change_cell, fill_column, mix_column, change_name, change_rows, many_owners, change_shape,
    change_option,
)  # fmt: skip
