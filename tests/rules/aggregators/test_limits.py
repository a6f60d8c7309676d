"""What holds for aggregators: limiting cases, ties, order, and how many lies they withstand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import from_plain, to_plain
from asyncfed.registry import kinds
from asyncfed.rules import (
    Aggregator,
    Average,
    CenteredClipping,
    Ctma,
    GeometricMedian,
    Krum,
    Median,
    MultiKrum,
    TrimmedMean,
)

ROBUST = {
    "median": Median(),
    "trimmed_mean": TrimmedMean(),
    "trimmed_mean 1": TrimmedMean(liars=1),
    "geometric_median": GeometricMedian(),
    "krum": Krum(),
    "multi_krum": MultiKrum(liars=1),
    "centered_clipping": CenteredClipping(iterations=2),
    "ctma": Ctma(),
    "ctma by weight": Ctma(share=0.3, anchor=GeometricMedian()),
    "ctma krum": Ctma(anchor=Krum(liars=1), liars=1),
}
each = pytest.mark.parametrize("aggregator", ROBUST.values(), ids=ROBUST)
fast = settings(deadline=None, max_examples=25)


def made_by(aggregator, vectors, weights=None, ids=None):
    vectors = np.asarray(vectors, float)
    weights = np.full(len(vectors), 1 / len(vectors)) if weights is None else np.asarray(weights, float)
    ids = np.arange(len(vectors)) if ids is None else np.asarray(ids)
    aggregator.check(len(vectors))
    return aggregator.aggregate(vectors, weights, aggregator.init(vectors[0]), ids)[0]


@st.composite
def clouds(draw, least=5):
    count = draw(st.integers(least, 11))
    chance = np.random.default_rng(draw(st.integers(0, 10_000)))
    vectors = np.round(chance.normal(size=(count, 4)) * 4) if draw(st.booleans()) else chance.normal(size=(count, 4))
    return vectors, chance


def test_every_shipped_one_is_tried():
    shipped = {kind for kind, made in kinds("aggregator").items() if made.__module__.startswith("asyncfed.")}
    assert shipped == {name.split()[0] for name in ROBUST} | {"average"}


@each
def test_it_is_a_value_that_can_be_written(aggregator):
    assert isinstance(aggregator, Aggregator)
    assert from_plain(to_plain(aggregator), Aggregator) == aggregator


@pytest.mark.parametrize(
    "mean",
    [
        TrimmedMean(liars=0),
        Ctma(liars=0, anchor=Median(liars=0)),
        Ctma(share=0.0),
        MultiKrum(liars=0),
        CenteredClipping(radius=np.inf),
        Average(),
    ],
    ids=str,
)
@fast
@given(clouds(), st.booleans())
def test_without_liars_it_is_the_mean(mean, drawn, equal):
    vectors, chance = drawn
    weights = np.full(len(vectors), 1 / len(vectors)) if equal else chance.dirichlet(np.ones(len(vectors)))
    assert made_by(mean, vectors, weights).vector == pytest.approx(weights @ vectors, rel=1e-12, abs=1e-12)
    if isinstance(mean, Ctma | MultiKrum) and mean != Ctma(share=0.0):
        assert made_by(mean, vectors, weights).vector.tobytes() == made_by(Average(), vectors, weights).vector.tobytes()


@each
@fast
@given(clouds(), st.booleans())
def test_the_order_of_vectors_does_not_matter(aggregator, drawn, equal):
    vectors, chance = drawn
    weights = np.full(len(vectors), 1 / len(vectors)) if equal else chance.dirichlet(np.ones(len(vectors)))
    ids, order = chance.permutation(100)[: len(vectors)], chance.permutation(len(vectors))
    one = made_by(aggregator, vectors, weights, ids)
    other = made_by(aggregator, vectors[order], weights[order], ids[order])
    assert one.vector.tobytes() == other.vector.tobytes()
    for name in ("kept", "scores"):
        if getattr(one, name) is not None:
            assert getattr(one, name)[order].tolist() == getattr(other, name).tolist()


@each
@fast
@given(clouds())
def test_equal_vectors_are_a_fixed_point(aggregator, drawn):
    vectors = np.tile(drawn[0][0], (len(drawn[0]), 1))
    assert made_by(aggregator, vectors).vector == pytest.approx(vectors[0], rel=1e-12, abs=1e-12)


LIES = st.sampled_from([1e300, -1e300, 1e9, -1e160, 1e3])


@each
@fast
@given(clouds(), LIES, st.booleans())
def test_so_many_liars_as_it_tolerates_cannot_move_it_far(aggregator, drawn, lie, alike):
    vectors, chance = drawn
    count = len(vectors)
    liars = aggregator.tolerates(count)
    assert 1 <= liars < count / 2
    honest = vectors[liars:]
    lies = np.full((liars, 4), lie) if alike else lie * chance.choice([-1.0, 0.5, 1.0], size=(liars, 4))
    with np.errstate(over="ignore"):
        made = made_by(aggregator, np.concatenate([lies, honest])).vector
    center = np.median(honest, axis=0)
    spread = np.linalg.norm(honest - center, axis=1).max() + np.linalg.norm(center)  # centred clipping begins at 0
    assert np.linalg.norm(made - center) <= 10 * spread + 1e-9


@pytest.mark.parametrize(
    "name", ["median", "trimmed_mean 1", "geometric_median", "krum", "multi_krum", "centered_clipping", "ctma"]
)
@pytest.mark.parametrize("count", [7, 8, 10])
def test_one_liar_more_moves_it_anywhere(name, count):
    """Sharp but for Krum, which liars who do not agree cannot deceive, and centred clipping, whose radius is the lower
    of two middle distances."""
    aggregator = ROBUST[name]
    liars = aggregator.tolerates(count) + 1
    if name in ("krum", "multi_krum"):  # n - f - 2 alike ones are nearest to each other
        liars = count - aggregator.tolerates(count) - 1
    if name == "centered_clipping":
        liars = count // 2 + 1
    vectors = np.random.default_rng(0).normal(size=(count, 3))
    vectors[:liars] = 1e9
    assert np.linalg.norm(made_by(aggregator, vectors).vector) > 1e7


@pytest.mark.parametrize("aggregator", [Median(), TrimmedMean(), TrimmedMean(liars=2)], ids=str)
@fast
@given(clouds(), LIES)
def test_coordinates_lie_between_order_statistics_of_the_honest(aggregator, drawn, lie):
    """q lies: at least the smallest honest value and at most the largest, and between the (q+1)-th of all."""
    vectors, chance = drawn
    q = aggregator.tolerates(len(vectors))
    vectors[:q] = lie * chance.normal(size=(q, 4))
    made, ordered = made_by(aggregator, vectors).vector, np.sort(vectors, axis=0)
    slack = 1e-12 * np.abs(made)
    assert (made >= ordered[q] - slack).all()
    assert (made <= ordered[-1 - q] + slack).all()
    assert (made >= vectors[q:].min(axis=0) - slack).all()
    assert (made <= vectors[q:].max(axis=0) + slack).all()


# ---- single aggregators ----


def test_the_median_of_an_even_number_is_between_the_two():
    assert made_by(Median(), [[1.0], [10.0], [2.0], [4.0]]).vector.tolist() == [3.0]


def test_the_weighted_median_by_hand():
    values = [[1.0], [2.0], [3.0]]
    assert made_by(Median(), values, [0.2, 0.2, 0.6]).vector.tolist() == [3.0]  # one with most of the weight is it
    assert made_by(Median(), values, [0.2, 0.3, 0.5]).vector.tolist() == [2.5]  # exactly 1/2 at 2
    assert made_by(Median(), values, [0.3, 0.3, 0.4]).vector.tolist() == [2.0]


def test_the_trimmed_mean_by_hand():
    values = [[1.0], [90.0], [2.0], [4.0], [-9.0]]
    assert made_by(TrimmedMean(liars=1), values).vector.tolist() == pytest.approx([7 / 3])
    weights = [0.1, 0.3, 0.1, 0.2, 0.3]
    assert made_by(TrimmedMean(liars=1), values, weights).vector.tolist() == pytest.approx([(1 + 2 + 8) / 4])
    assert made_by(TrimmedMean(liars=1), values, [0, 0.5, 0, 0, 0.5]).vector.tolist() == pytest.approx([7 / 3])


def test_the_geometric_median_by_hand():
    """Of the corners of a triangle with angles below 120 degrees: each side is seen under 120 degrees."""
    height = np.sqrt(3) / 2
    made = made_by(GeometricMedian(tolerance=0.0, iterations=200), [[0.0, 0.0], [1.0, 0.0], [0.5, height]]).vector
    assert made == pytest.approx([0.5, height / 3], abs=1e-6)
    most = [[3.0, 4.0]] * 3 + [[100.0, 0.0], [0.0, 100.0]]  # more than half are one point
    assert made_by(GeometricMedian(), most).vector.tolist() == [3.0, 4.0]


def test_krum_by_hand():
    """f = 1 of 5: the squares of the two nearest. 0: 1 + 4 = 5; 1: 1 + 1; 2: 1 + 4 (of 0; 3.5 is 2.25) ..."""
    made = made_by(Krum(liars=1), [[0.0], [1.0], [2.0], [3.5], [50.0]])
    assert made.vector.tolist() == [1.0]
    assert made.scores.tolist() == [5.0, 2.0, 3.25, 8.5, 46.5**2 + 48.0**2]
    assert made.kept is None
    made = made_by(MultiKrum(liars=1), [[0.0], [1.0], [2.0], [3.5], [50.0]])
    assert (made.vector.tolist(), made.kept.tolist()) == ([6.5 / 4], [True] * 4 + [False])
    made = made_by(MultiKrum(liars=1, keep=2), [[0.0], [1.0], [2.0], [3.5], [50.0]])
    assert (made.vector.tolist(), made.kept.tolist()) == ([1.5], [False, True, True, False, False])


def test_krum_ties_go_to_the_smaller_id():
    values = [[0.0], [4.0], [0.0], [4.0], [0.0], [4.0]]
    assert made_by(Krum(liars=1), values, ids=[5, 0, 4, 1, 3, 2]).vector.tolist() == [4.0]
    assert made_by(Krum(liars=1), values, ids=[0, 5, 1, 4, 2, 3]).vector.tolist() == [0.0]


def test_ctma_keeps_exactly_n_minus_f_also_on_ties():
    """All but the median are at distance 1; public code keeps all of them and divides by n - f."""
    values = [[1.0], [-1.0], [0.0], [1.0], [-1.0]]
    made = made_by(Ctma(liars=2), values, ids=[10, 11, 12, 13, 14])
    assert (made.kept.tolist(), made.vector.tolist()) == ([True, True, True, False, False], [0.0])
    made = made_by(Ctma(liars=2), values, ids=[10, 14, 12, 11, 13])
    assert (made.kept.tolist(), made.vector.tolist()) == ([True, False, True, True, False], [2 / 3])


def test_ctma_by_weight_takes_a_part_of_the_last():
    """Nearest to the median 1 are 1, 2, 0 (the smaller id of 0 and 2 first): 0.3 + 0.3 and 0.15 of 0.2."""
    made = made_by(Ctma(share=0.25), [[0.0], [1.0], [2.0], [50.0]], [0.3, 0.3, 0.2, 0.2])
    assert made.vector.tolist() == pytest.approx([(0.3 + 0.15 * 2) / 0.75])
    assert made.kept.tolist() == [True, True, True, False]


def test_centred_clipping_by_hand():
    """From 0, radius 2: (1 + 2 + 2) / 3; the second time 5/3 + (-2/3 + 2 + 2) / 3."""
    values = [[1.0], [4.0], [900.0]]
    assert made_by(CenteredClipping(radius=2.0), values).vector.tolist() == pytest.approx([5 / 3])
    made = made_by(CenteredClipping(radius=2.0, iterations=2), values)
    assert made.vector.tolist() == pytest.approx([5 / 3 + (10 / 3) / 3])
    assert made.scores.tolist() == [1.0, 4.0, 900.0]


def test_centred_clipping_goes_on_from_its_last_point():
    rule, weights, ids = CenteredClipping(), np.full(3, 1 / 3), np.arange(3)
    memory = rule.init(np.zeros(1))
    first, memory = rule.aggregate(np.array([[1.0], [2.0], [900.0]]), weights, memory, ids)
    assert first.vector.tolist() == pytest.approx([5 / 3])  # the radius is the median, 2
    second, memory = rule.aggregate(np.full((3, 1), 5 / 3), weights, memory, ids)
    assert second.vector == pytest.approx(first.vector)
    assert memory["distances/count"] == 6


def test_no_vector_is_too_long_for_a_median_of_few():
    huge = [[1e300], [1.0], [-1e300]]
    assert made_by(Median(), huge).vector.tolist() == [1.0]
    assert made_by(GeometricMedian(), huge).vector.tolist() == [1.0]


@pytest.mark.parametrize(
    ("aggregator", "count", "message"),
    [
        (Median(), 2, "median needs at least 3"),
        (Median(liars=3), 6, "median needs at least 7 updates at once to withstand 3 liars; there are 6"),
        (TrimmedMean(liars=2), 4, "trimmed_mean needs at least 5"),
        (GeometricMedian(), 2, "geometric_median needs at least 3"),
        (Krum(liars=2), 6, "krum needs at least 7 updates at once to withstand 2 liars; there are 6"),
        (MultiKrum(), 4, "multi_krum needs at least 5"),
        (MultiKrum(liars=1, keep=6), 6, "at most 5 can be kept"),
        (CenteredClipping(), 2, "centered_clipping needs at least 3"),
        (Ctma(liars=2), 4, "ctma needs at least 5"),
        (
            Ctma(liars=2, anchor=Krum(liars=1)),
            5,
            "ctma.anchor withstands 1 liars among 5 updates; ctma is to withstand 2",
        ),
        (Ctma(anchor=Average()), 10, "ctma.anchor withstands 0 liars"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(aggregator, count, message):
    with pytest.raises(ConfigError, match=message):
        aggregator.check(count)


@pytest.mark.parametrize(
    ("made", "settings", "message"),
    [
        (Median, {"liars": -1}, "median.liars is -1"),
        (TrimmedMean, {"liars": -1}, "trimmed_mean.liars is -1"),
        (Krum, {"liars": -2}, "krum.liars is -2"),
        (MultiKrum, {"keep": 0}, "multi_krum.keep is 0"),
        (GeometricMedian, {"iterations": 0}, "geometric_median.iterations is 0"),
        (GeometricMedian, {"tolerance": -1.0}, "geometric_median.tolerance is -1.0"),
        (GeometricMedian, {"smoothing": 0.0}, "geometric_median.smoothing is 0.0"),
        (CenteredClipping, {"iterations": 0}, "centered_clipping.iterations is 0"),
        (Ctma, {"share": 0.5}, "ctma.share is 0.5"),
        (Ctma, {"share": 0.1, "liars": 1}, "both liars and share"),
    ],
)
def test_settings_are_checked(made, settings, message):
    with pytest.raises(ConfigError, match=message):
        made(**settings)


def test_ctma_with_a_factor_leaves_out_at_most_f_and_only_who_stands_out():
    rows = np.array([[1.0], [2.0], [3.0], [90.0], [80.0]])
    weights, ids = np.full(5, 0.2), np.arange(5)
    found, _ = Ctma(liars=1, factor=3.0).aggregate(rows, weights, {}, ids)
    assert found.kept.tolist() == [True, True, True, False, True]  # two stand out; one may be left out
    found, _ = Ctma(liars=2, factor=3.0).aggregate(rows, weights, {}, ids)
    assert found.kept.tolist() == [True, True, True, False, False]
    found, _ = Ctma(liars=2, factor=3.0).aggregate(rows[:3], np.full(3, 1 / 3), {}, ids[:3])
    assert found.kept.all()
    assert found.vector == pytest.approx([2.0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"factor": 0.5}, "factor is 0.5"), ({"factor": 2.0, "share": 0.2}, "both factor and share")],
)
def test_a_factor_that_makes_no_sense_is_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        Ctma(**settings)
