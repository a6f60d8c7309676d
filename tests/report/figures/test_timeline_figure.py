import asyncfed as af
from asyncfed.report.figures.timeline_figure import MOST_BARS, Bar, bars_of, draw_timeline

EVENTS = {
    "time": [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 4.0],
    "kind": ["dispatch", "dispatch", "dispatch", "report", "merge", "lost", "dispatch", "leave", "stop"],
    "ticket": [0, 1, 2, 0, None, 1, 3, None, None],
    "client": [5, 6, 8, 5, None, 6, 7, 7, None],
    "detail": [None, None, None, None, '{"tickets":[0]}', None, None, None, None],
}


def test_every_ticket_is_a_bar_from_its_dispatch_to_what_became_of_it():
    bars, merges = bars_of(EVENTS)
    assert bars == [
        Bar(5, 0.0, 1.0, "reported"),
        Bar(6, 0.0, 2.0, "lost"),
        Bar(8, 0.0, 4.0, "in flight"),
        Bar(7, 3.0, 3.0, "lost"),
    ]
    assert merges == [(1.0, 5)]


def test_the_picture_of_a_short_run_shows_all_of_it(small):
    run = af.run(small())
    figure = draw_timeline(run, run.journal.event_columns())
    (axes,) = figure.axes
    dispatched = run.journal.event_columns()["kind"].count("dispatch")
    assert len(axes.patches) == dispatched
    assert f"all {dispatched} tickets" in [text.get_text() for text in figure.texts]


def test_the_picture_of_a_long_run_shows_its_beginning_and_says_so(small):
    run = af.run(small(budget=af.Budget(updates=2 * MOST_BARS)))
    figure = draw_timeline(run, run.journal.event_columns())
    assert len(figure.axes[0].patches) == MOST_BARS
    assert any(f"the first {MOST_BARS} of" in text.get_text() for text in figure.texts)
