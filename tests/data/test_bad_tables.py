"""What can be wrong with a table of one's own, through the command line: one clear sentence, and nothing written."""

import re

import numpy as np
import pytest

GOOD = ["shop,price,colour,y", *(f"{'ab'[i % 2]},{i},{'red' if i % 3 else 'blue'},{i * i % 7}" for i in range(40))]
ROW = 5


def with_row(text):
    return [*GOOD[: ROW - 1], text, *GOOD[ROW:]]


BAD = {
    "no such target": (GOOD, ["--target", "prise"], r'no column "prise" \(the target\)\. Did you mean "price"\?'),
    "no such client column": (GOOD, ["--client-column", "shops"], r'no column "shops".*Did you mean "shop"\?'),
    "no such feature": (GOOD, ["--set", 'data.features=["color"]'], r'no column "color".*Did you mean "colour"\?'),
    "a client with one row": (with_row("c,1,red,2"), [], r'Client "c" has 1 row\(s\) with a target.*leave_out'),
    "a constant target": (
        [GOOD[0], *(f"{'ab'[i % 2]},{i},red,5" for i in range(40))], [],
        r'target "y" is 5 in every row, so there is nothing to learn',
    ),
    "a constant class": (
        [GOOD[0], *(f"{'ab'[i % 2]},{i},red,yes" for i in range(40))], ["--problem", "svm"],
        r'target "y" is (1|yes) in every row, so there is nothing to learn',
    ),
    "text in a number column": (
        with_row("a,cheap,red,2"), [], r'Column "price" holds numbers, but in row 5 it says "cheap".*data\.missing',
    ),
    "no target at one client": (
        [*GOOD, *(f"c,{i},red," for i in range(9))], [], r'Client "c" has no row with a value of the target "y"',
    ),
    "three classes": (
        [GOOD[0], *(f"{'ab'[i % 2]},{i},red,{'xyz'[i % 3]}" for i in range(40))], ["--problem", "svm"],
        r'target "y" has 3 classes \(x, y, z\), and this problem needs 2.*--set data\.positive="x"',
    ),
    "classes to regress on": (
        [GOOD[0], *(f"{'ab'[i % 2]},{i},red,{'xy'[i % 2]}" for i in range(40))], ["--problem", "ridge"],
        r'target "y" holds classes \(x, y\), but this problem is a regression.*--problem logistic',
    ),
    "an empty file": ([], [], r"table\.csv is empty\. The first row"),
    "no rows": (GOOD[:1], [], r"table\.csv has no rows"),
    "duplicated columns": (["shop,y,y", "a,1,2", "b,2,3"], [], r'more than one column "y"'),
    "a column without a name": (["shop,,y", "a,1,2", "b,2,3"], [], r"Column 2 of .* has no name"),
    "a row that is too long": (with_row("a,1,red,2,9"), [], r"4 columns, but row 5 has 5 values"),
    "only one client": ([GOOD[0], *(f"a,{i},red,{i}" for i in range(40))], [], r'"shop" names 1 client\(s\)'),
    "nothing to learn from": (
        ["shop,price,y", *(f"{'ab'[i % 2]},7,{i}" for i in range(40))], [], r"No column is left.*price \(constant\)",
    ),
    "a problem that is not there": (GOOD, ["--problem", "rigde"], r'no problem "rigde"\. Did you mean "ridge"\?'),
    "a number of clients beside a column": (GOOD, ["--num-clients", "5"], r"num_clients is 5, but .* names 2 clients"),
    "a preset besides": (GOOD, ["svm"], r"argument is .svm. and --data is .table.csv.; both say what to run"),
    "an unknown key": (GOOD, ["--set", "data.ignor=[]"], r'no key `ignor`. Did you mean "ignore"\?'),
}  # fmt: skip


def complaint(result):
    assert result.code == 2, result.out
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err
    return result.err


@pytest.fixture
def attempt(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*options, target="y", column="shop"):
        wanted = ["run", *options, "--data", "table.csv", "--out", "run.sqlite"]
        wanted += [] if "--target" in options else ["--target", target]
        wanted += [] if "--client-column" in options else ["--client-column", column]
        return cli(*wanted)

    return run


@pytest.mark.parametrize(("lines", "options", "words"), BAD.values(), ids=BAD)
def test_a_bad_table_is_refused(attempt, tmp_path, lines, options, words):
    (tmp_path / "table.csv").write_text("\n".join(lines))
    assert re.search(words, complaint(attempt(*options)))
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_the_table_they_are_made_from_is_good(attempt, tmp_path):
    (tmp_path / "table.csv").write_text("\n".join(GOOD))
    assert attempt("--rounds", "2").code == 0


def test_a_missing_file(attempt):
    assert "The table table.csv cannot be read (No such file or directory). Check data.path." in complaint(attempt())


def test_no_target_named(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("\n".join(GOOD))
    assert "Name it with --target: shop, price, colour, y." in complaint(cli("run", "table.csv"))


def test_unknown_data(cli):
    assert 'There are no data "flight". Did you mean "flights"?' in complaint(cli("run", "--data", "flight"))


def test_a_file_that_is_not_utf_8(attempt, tmp_path):
    (tmp_path / "table.csv").write_bytes("\n".join(GOOD).replace("red", "grün").encode("latin1"))
    assert re.search(r"table\.csv is not UTF-8: byte \d+ .* is 0xfc\. Save it as UTF-8", complaint(attempt()))


def test_values_missing_at_one_client_are_filled_and_said(attempt, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{'ab'[i % 2]},{i if i % 2 else ''},red,{rng.normal():.3f}" for i in range(40)]
    (tmp_path / "table.csv").write_text("\n".join([GOOD[0], *lines]))
    done = attempt("--rounds", "2")
    assert done.code == 0, done.err
    assert "1 client(s) having none at all" in done.out
    assert "left out: colour (constant)" in done.out


def test_what_the_message_says_to_do_helps(attempt, tmp_path):
    (tmp_path / "table.csv").write_text("\n".join(with_row("c,1,red,2")))
    done = attempt("--rounds", "2", "--set", "data.small_clients=leave_out")
    assert done.code == 0, done.err
    assert "1 clients with fewer than 2 rows left out (1 rows)" in done.out
    lines = [GOOD[0], *(f"{'ab'[i % 2]},{i},red,{'xyz'[i % 3]}" for i in range(40))]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    done = attempt("--problem", "svm", "--rounds", "2", "--set", 'data.positive="x"', "--force")
    assert re.search(r"\+1 is x \(\d+ training rows\), −1 is the rest", done.out)
    assert done.code == 0, done.err
