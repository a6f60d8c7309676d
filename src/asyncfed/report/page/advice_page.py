"""Advice: a recommendation that prints itself and writes its page."""

from __future__ import annotations

from pathlib import Path

from asyncfed.advice.finalists import DEFAULT
from asyncfed.advice.recommendation import Recommendation, settings_text
from asyncfed.advice.sentences import COSTS, finalist_rows, plain_text, sentences, target_sentence
from asyncfed.core.errors import ConfigError
from asyncfed.report.figures.advice_figures import finalists_figure, pareto_figure
from asyncfed.report.page.html_page import write_page


class Advice(Recommendation):
    """Which strategy to use for given data and delays, found by simulation: what `asyncfed.advise` answers with.

    `print` it for the recommendation in words. `winner` is the label of what is recommended, `to_toml()` the experiment
    with it, `ratio(label, other)` what one finalist costs over another with its 95 % interval.

    Args:
        experiment: what was asked about, with the delays that were simulated.
        aim: what counts: "time", "bytes", "energy" or "worst_clients".
        target: what was to be reached.
        budget: the virtual seconds of each run.
        finalists: what was compared with fresh seeds, by label.
        baseline: the label of synchronous FedAvg with its best settings.
        seeds: the finalists' seeds, none of which the search has seen.
        points: what the settings cost that reached the target in the search.
        num_runs: how many runs were simulated.
        notes: what a reader should know, sentences.
        favourite: the label of the finalist that was the best in the race; None if there was no race.

    >>> issubclass(Advice, Recommendation)
    True
    """

    @classmethod
    def of(cls, found: Recommendation) -> Advice:
        """The same recommendation, with a page."""
        return cls(**vars(found))

    def __str__(self) -> str:
        return plain_text(self)

    def __repr__(self) -> str:
        return f"Advice({self.winner}: {settings_text(self.finalists[self.winner].settings)})"

    def save(self, path: Path | str) -> Path:
        """Write the page with the recommendation, the finalists and the figures.

        Args:
            path: an .html file, or a folder, in which it is advice.html.

        Returns:
            The file.
        """
        file = Path(path)
        return write_advice_page(self, file if file.suffix == ".html" else file / "advice.html")

    def save_toml(self, path: Path | str) -> Path:
        """Write the recommended experiment as TOML.

        Args:
            path: the file.

        Returns:
            The file.
        """
        file = Path(path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.to_toml(), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{file} cannot be written ({error.strerror}). Choose another place.") from error
        return file


def write_advice_page(advice: Recommendation, path: Path) -> Path:
    """Write the page of a recommendation."""
    first, *others = sentences(advice)
    return write_page(
        path,
        f"{advice.experiment.name}: {advice.winner} is recommended",
        [_verdict(advice, advice.baseline, "its own best settings"), _verdict(advice, DEFAULT, "default settings")],
        [pareto_figure(advice), finalists_figure(advice)],
        {
            "The recommended experiment (TOML)": advice.to_toml(),
            "What was searched": {
                "objective": advice.aim,
                "budget of a run, virtual seconds": advice.budget,
                "simulated runs": advice.num_runs,
                "seeds of the finalists": list(advice.seeds),
            },
        },
        {
            "Recommendation": [{"": text} for text in (first, *others, target_sentence(advice), *advice.notes)],
            "Finalists (* recommended)": finalist_rows(advice),
            "Their settings": [
                {"finalist": label, "settings": settings_text(advice.finalists[label].settings)}
                for label in advice.ranking
            ],
        },
    )


def _verdict(advice: Recommendation, other: str, words: str) -> dict[str, object]:
    ratio = advice.ratio(advice.winner, other)
    same = advice.winner == other
    word = "does not hold" if same or ratio.low > 1 else "holds" if ratio.high < 1 else "undecided"
    return {
        "id": f"against {other}",
        "claim": f"{advice.winner} beats synchronous FedAvg with {words}",
        "statistic": f"ratio of {COSTS[advice.aim]}",
        "number": None if same else ratio.mean,
        "low": None if same else ratio.low,
        "high": None if same else ratio.high,
        "verdict": word,
        "reason": "that is what is recommended" if same else f"{ratio.n} pairs of runs with equal seeds",
        "figure": "finalists",
    }
