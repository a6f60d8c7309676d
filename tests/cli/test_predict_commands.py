"""From a table to predictions of another: run, export, predict."""

import csv

import pytest


def test_new_rows_are_predicted(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("shops.csv", "w") as file:
        rows = csv.writer(file)
        rows.writerow(["shop", "size", "sold"])
        rows.writerows([f"s{number % 2}", number, 3 * number + 1] for number in range(60))
    with open("new.csv", "w") as file:
        file.write("size\n10\n20\n")
    assert cli("run", "shops.csv", "--target", "sold", "--client-column", "shop", "--out", "run.sqlite").code == 0
    assert cli("export", "run.sqlite", "model.json", "--to", "model", "--personalize").code == 0
    done = cli("predict", "model.json", "new.csv", "--client", "s1")
    assert done.out.strip() == "predictions of 2 rows: predictions.csv"
    with open("predictions.csv") as file:
        header, *found = csv.reader(file)
    assert header == ["row", "sold"]
    assert [float(row[1]) for row in found] == pytest.approx([31, 61], abs=2)
