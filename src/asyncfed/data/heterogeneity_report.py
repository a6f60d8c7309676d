"""What tests of the clients' data found, compared with the skew that was claimed."""

from __future__ import annotations

from asyncfed.core.record import Record
from asyncfed.data.claimed_skew import SKEW_ASPECTS, SkewAspect

# Four tests at this level call IID clients non-IID in at most 2 of 100 cases.
LEVEL = 0.005


class SkewTest(Record):
    """The test of one aspect: a statistic, its mean for IID clients, and how often theirs would be as large.

    Args:
        aspect: "sizes", "target", "features" or "concept".
        measure: what the statistic is, in words.
        statistic: how far the clients are from the pool, 0 or more.
        expected: the mean of the statistic for IID clients.
        p_value: the probability of a statistic as large for IID clients, 0 to 1.
    """

    aspect: SkewAspect
    measure: str
    statistic: float
    expected: float
    p_value: float

    @property
    def differs(self) -> bool:
        """Whether IID clients would hardly ever give a statistic as large: `p_value` is at most 0.005."""
        return self.p_value <= LEVEL

    def describe(self) -> str:
        """The statistic, what IID clients would give, and the p-value, in words."""
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        return f"{self.measure} {self.statistic:.3g} against {self.expected:.3g} expected under IID, {p}"


class HeterogeneityReport(Record):
    """How different the clients are: their sizes, four tests, and a verdict on the claimed skew.

    Args:
        num_clients: how many clients there are.
        num_rows: the rows of all clients together.
        smallest: the rows of the smallest client.
        median: the median of the clients' rows.
        largest: the rows of the largest client.
        gini: the Gini coefficient of the sizes, 0 (all equal) to 1.
        tests: one test per aspect: sizes, target, features, concept.
        claimed_skew: the aspects in which clients were meant to differ; empty: IID; None: nothing was claimed.
        notes: which clients and rows the tests used, if not all.
    """

    num_clients: int
    num_rows: int
    smallest: int
    median: float
    largest: int
    gini: float
    tests: tuple[SkewTest, ...]
    claimed_skew: tuple[SkewAspect, ...] | None
    notes: tuple[str, ...] = ()

    def test(self, aspect: SkewAspect) -> SkewTest:
        """The test of one aspect."""
        return next(test for test in self.tests if test.aspect == aspect)

    @property
    def matches_claim(self) -> bool:
        """Whether clients differ in every aspect claimed; if IID was claimed, whether they differ in none."""
        if self.claimed_skew is None:
            return True
        if not self.claimed_skew:
            return not any(test.differs for test in self.tests)
        return all(self.test(aspect).differs for aspect in self.claimed_skew)

    @property
    def verdict(self) -> str:
        """What the tests found about the claim, in words."""
        if self.claimed_skew:
            return _verdict_on_difference([self.test(aspect) for aspect in self.claimed_skew], self.tests)
        seen = [test for test in self.tests if test.differs]
        found = "; ".join(f"non-IID in {test.aspect} ({test.describe()})" for test in seen)
        if self.claimed_skew is None:
            return found or "indistinguishable from IID"
        return f"claimed to be IID, but {found}" if seen else "IID, as claimed"

    def lines(self) -> list[str]:
        """The report for printing."""
        sizes = f"sizes {self.smallest} to {self.largest} (median {self.median:g}), Gini {self.gini:.2f}"
        width = max(map(len, SKEW_ASPECTS))
        return [
            f"{self.num_clients} clients, {self.num_rows} rows: {sizes}",
            *(f"  {test.aspect:<{width}}  {test.describe()}" for test in self.tests),
            *(f"  note: {note}" for note in self.notes),
            f"verdict: {self.verdict}",
        ]


def _verdict_on_difference(claimed: list[SkewTest], tests: tuple[SkewTest, ...]) -> str:
    parts = []
    for test in claimed:
        if test.differs:
            parts.append(f"non-IID in {test.aspect} ({test.describe()})")
        else:
            parts.append(
                f"claimed to be non-IID in {test.aspect}; indistinguishable from IID ({test.describe()}): "
                "no different from rows assigned at random"
            )
    others = [test.aspect for test in tests if test.differs and test not in claimed]
    if others:
        parts.append(f"differs also in {' and '.join(others)}")
    return "; ".join(parts)
