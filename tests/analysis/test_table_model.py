"""An exported model predicts, from raw rows, what the run's own problem computes from prepared ones."""

import csv

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.table_model import TableModel, predicted_columns, read_rows
from asyncfed.core.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """Numbers, a category and a hole; three kinds of targets."""
    rng = np.random.default_rng(8)
    path = tmp_path_factory.mktemp("model") / "shops.csv"
    with path.open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["shop", "size", "colour", "sold", "left", "kind"])
        for number in range(240):
            size, colour = rng.normal(50, 9), rng.choice(["red", "green", "blue"])
            sold = size + 8 * (colour == "red") + rng.normal()
            kind = ["small", "middle", "large"][int(np.clip((sold - 35) / 15, 0, 2))]
            shown = "" if number == 7 else f"{size:.3f}"
            rows.writerow([f"s{number % 3}", shown, colour, f"{sold:.3f}", "yes" if sold > 50 else "no", kind])
    return path


def run_on(shops, target, **how):
    others = [name for name in ("sold", "left", "kind") if name != target]
    experiment = af.presets.table(
        str(shops), target=target, client_column="shop", rounds=30, settings={"data.ignore": others}, **how
    )
    return af.run(experiment)


def test_numbers_are_predicted_in_their_own_unit(shops, tmp_path):
    run = run_on(shops, "sold")
    run.table_model().save(tmp_path / "model.json")
    model = TableModel.load(tmp_path / "model.json")
    assert model == run.table_model()
    rows = read_rows(str(shops))
    predicted, truth = model.predict(rows), rows["sold"].values
    assert np.corrcoef(predicted, truth)[0, 1] > 0.95
    data = run.experiment.prepare_data()
    prepared, _ = data.preparation.apply(rows)
    np.testing.assert_allclose(predicted, prepared @ run.params[:-1] + run.params[-1], rtol=1e-12)
    assert model.probabilities(rows) == {}


def test_classes_are_predicted_by_name_with_probabilities(shops):
    model = run_on(shops, "left").table_model()
    rows = read_rows(str(shops))
    shares = model.probabilities(rows)
    np.testing.assert_allclose(sum(shares.values()), 1.0)
    positive = model.target.positive
    np.testing.assert_array_equal(model.predict(rows) == positive, shares[positive] > 0.5)
    columns = predicted_columns(model, rows)
    assert list(columns) == ["row", "left", *(f"probability of {name}" for name in shares)]
    assert columns["row"][:2] == [2, 3]


def test_a_clients_own_model_is_used_if_it_is_named(shops):
    run = run_on(shops, "sold")
    model = run.table_model(personalize=True)
    assert set(model.clients) == {"s0", "s1", "s2"}
    rows = read_rows(str(shops))
    np.testing.assert_allclose(model.weights, run.params[None])
    own = dict(zip(run.problem.client_names, run.personalize().models, strict=True))
    np.testing.assert_allclose(model.clients["s1"], own["s1"][None])
    assert model.predict(rows, "s1").shape == (240,)
    with pytest.raises(ConfigError, match=r'no model of client "s9" in it\. '):
        model.predict(rows, "s9")


def test_what_a_new_table_lacks_is_said(shops, tmp_path):
    model = run_on(shops, "sold").table_model()
    other = tmp_path / "other.csv"
    other.write_text("size,color\n50,red\n")
    with pytest.raises(
        DataError, match=r'no column "colour" \(which the model was learnt from\). Did you mean "color"'
    ):
        model.predict(read_rows(str(other)))
    other.write_text("size,colour\nbig,red\nhuge,red\n")
    with pytest.raises(DataError, match='Column "size" held numbers when the model was learnt, and now it says "big"'):
        model.predict(read_rows(str(other)))
    other.write_text("size,colour\n50,pink\n,red\n")  # a level it has not seen, and a hole
    assert np.isfinite(model.predict(read_rows(str(other)))).all()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', "\x00"])
def test_what_is_no_model_is_refused(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"is no model .*`asyncfed export RUN model.json --to model`"):
        TableModel.load(path)


def test_a_run_without_columns_says_so(small):
    with pytest.raises(ConfigError, match=r"`run\.params` is its model"):
        af.run(small()).table_model()
