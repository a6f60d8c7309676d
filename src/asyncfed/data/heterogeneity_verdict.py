"""What was found out about the clients' differences, against what was asked for."""

from __future__ import annotations

from asyncfed.core.record import Record
from asyncfed.data.claimed_skew import RESPECTS, Respect

# Four lenses at this level call IID clients non-IID in at most 2 of 100 cases.
LEVEL = 0.005


class Lens(Record):
    """One measure of difference, its mean under IID, and how often IID clients would look as different."""

    respect: Respect
    measure: str
    statistic: float
    expected: float
    p_value: float

    @property
    def differs(self) -> bool:
        return self.p_value <= LEVEL

    def words(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        return f"{self.measure} {self.statistic:.3g} against {self.expected:.3g} expected under IID, {p}"


class HeterogeneityReport(Record):
    """Sizes, four lenses, and a verdict on what was asked (`asks` as in a split)."""

    num_clients: int
    num_rows: int
    smallest: int
    median: float
    largest: int
    gini: float
    lenses: tuple[Lens, ...]
    asks: tuple[Respect, ...] | None
    notes: tuple[str, ...] = ()

    def lens(self, respect: Respect) -> Lens:
        return next(lens for lens in self.lenses if lens.respect == respect)

    @property
    def is_what_was_asked(self) -> bool:
        """Whether clients differ in every respect asked for; if IID was asked, whether they differ in none."""
        if self.asks is None:
            return True
        if not self.asks:
            return not any(lens.differs for lens in self.lenses)
        return all(self.lens(respect).differs for respect in self.asks)

    @property
    def verdict(self) -> str:
        if self.asks:
            return _verdict_on_difference([self.lens(respect) for respect in self.asks], self.lenses)
        seen = [lens for lens in self.lenses if lens.differs]
        found = "; ".join(f"non-IID in {lens.respect} ({lens.words()})" for lens in seen)
        if self.asks is None:
            return found or "indistinguishable from IID"
        return f"asked to be IID, but {found}" if seen else "IID, as asked"

    def lines(self) -> list[str]:
        """The report for printing."""
        sizes = f"sizes {self.smallest} to {self.largest} (median {self.median:g}), Gini {self.gini:.2f}"
        width = max(map(len, RESPECTS))
        return [
            f"{self.num_clients} clients, {self.num_rows} rows: {sizes}",
            *(f"  {lens.respect:<{width}}  {lens.words()}" for lens in self.lenses),
            *(f"  note: {note}" for note in self.notes),
            f"verdict: {self.verdict}",
        ]


def _verdict_on_difference(asked: list[Lens], lenses: tuple[Lens, ...]) -> str:
    parts = []
    for lens in asked:
        if lens.differs:
            parts.append(f"non-IID in {lens.respect} ({lens.words()})")
        else:
            parts.append(
                f"asked to be non-IID in {lens.respect}; indistinguishable from IID ({lens.words()}): "
                "the rows might as well have been dealt at random"
            )
    others = [lens.respect for lens in lenses if lens.differs and lens not in asked]
    if others:
        parts.append(f"differs also in {' and '.join(others)}")
    return "; ".join(parts)
