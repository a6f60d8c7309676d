"""Figures as data, in files."""

from asyncfed.report.figures.figure_data import load, save


def test_what_is_saved_is_loaded_again(made_figures, tmp_path):
    for figure in made_figures:
        path = tmp_path / "new" / f"{figure.name}.json"
        save(figure, path)
        assert load(path) == figure
        before = path.read_bytes()
        save(load(path), path)
        assert path.read_bytes() == before
