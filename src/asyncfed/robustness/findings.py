"""What the study's rows say in words: which attacks hurt nobody, who holds against which, and where nobody does."""

from __future__ import annotations

from collections.abc import Sequence

from asyncfed.core.record import Record
from asyncfed.robustness.defences import BASES, DEFENCES
from asyncfed.robustness.scenarios import HONEST, Scenario
from asyncfed.robustness.summary import Row


class Finding(Record):
    """One attack by one share of the clients in one scenario.

    Args:
        scenario: where.
        attack: which.
        share: the share of the clients that lie.
        harmless_to: the undefended strategies that hold.
        hurts: the undefended strategies that do not.
        without_trust: the defences that hold and need no trusted data.
        with_trust: the defences that hold and need them.
    """

    scenario: Scenario
    attack: str
    share: float
    harmless_to: tuple[str, ...]
    hurts: tuple[str, ...]
    without_trust: tuple[str, ...]
    with_trust: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What was found, for a reader."""
        against = f"{self.attack.replace('_', ' ')} by {100 * self.share:g} % of the clients"
        if not self.hurts:
            return f"{against} hurts nobody: undefended runs hold."
        whom = "undefended runs fail" if not self.harmless_to else f"undefended it breaks {_words(self.hurts)} only"
        if not (self.without_trust or self.with_trust):
            return f"{against}: {whom}, and no defence holds."
        if not self.without_trust:
            return f"{against}: {whom}; no defence without trusted data holds, with them {_words(self.with_trust)}."
        trusted = _words(self.with_trust) if self.with_trust else "none"
        return f"{against}: {whom}; {_words(self.without_trust)} hold; of those with trusted data, {trusted}."


def findings(rows: Sequence[Row]) -> list[Finding]:
    """One for each scenario, attack and share, in the order of the rows."""
    groups: dict[tuple[Scenario, str, float], list[Row]] = {}
    for row in rows:
        if row.cell.attack != HONEST:
            groups.setdefault((row.cell.scenario, row.cell.attack, row.cell.share), []).append(row)
    found = []
    for (scenario, attack, share), some in groups.items():
        bases = [row for row in some if row.cell.defence in BASES]
        held = [row.cell.defence for row in some if row.held and row.cell.defence not in BASES]
        found.append(
            Finding(
                scenario,
                attack,
                share,
                tuple(row.cell.defence for row in bases if row.held),
                tuple(row.cell.defence for row in bases if not row.held),
                tuple(name for name in held if not DEFENCES[name].trusted),
                tuple(name for name in held if DEFENCES[name].trusted),
            )
        )
    return found


def _words(names: Sequence[str]) -> str:
    plain = [name.replace("_", " ") for name in names]
    return plain[0] if len(plain) == 1 else f"{', '.join(plain[:-1])} and {plain[-1]}"
