import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import from_plain, to_plain
from asyncfed.core.types import Dispatch, Work, staleness_of
from asyncfed.strategies.discounts import Discount, Hinge, NoDiscount, Polynomial

discounts = st.one_of(
    st.just(NoDiscount()),
    st.builds(Polynomial, power=st.floats(0, 5)),
    st.builds(Hinge, slope=st.floats(0, 100), grace=st.integers(0, 20)),
)


@given(discounts)
def test_fresh_counts_one(discount):
    assert discount.weight(0) == 1.0


@given(discounts, st.integers(0, 1000))
def test_older_never_counts_more_and_never_nothing(discount, staleness):
    assert 1.0 >= discount.weight(staleness) >= discount.weight(staleness + 1) > 0.0


@given(discounts)
def test_a_discount_is_read_back_as_written(discount):
    assert from_plain(to_plain(discount), Discount) == discount


def test_the_equations():
    assert [Polynomial(power=0.5).weight(tau) for tau in (0, 3, 8, 15)] == [1.0, 0.5, 1 / 3, 0.25]
    assert [Hinge(slope=10.0, grace=4).weight(tau) for tau in (4, 5, 6)] == [1.0, 1 / 11, 1 / 21]


def test_staleness_is_versions_since_the_download():
    assert staleness_of(Dispatch(0, 0, 4, Work()), 4) == 0
    assert staleness_of(Dispatch(0, 0, 4, Work()), 9) == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(power=-1.0), r"staleness power is -1\.0; it must be zero or positive"),
        (lambda: Polynomial(power=float("inf")), "staleness power is inf"),
        (lambda: Hinge(slope=-1.0), r"hinge slope -1\.0 and grace 4 must be zero or positive"),
        (lambda: Hinge(grace=-1), "grace -1"),
    ],
)
def test_impossible_discounts_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
