"""The algorithms as people read them: the card of each, and the table one can scan."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import import_module

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.types import Work
from asyncfed.registry import kinds
from asyncfed.strategies.algorithm import FAMILIES, Algorithm, algorithm_named, algorithms, module_of
from asyncfed.strategies.schedules import DelayAware
from asyncfed.strategies.single_updates import why_single_updates

CARD_PARAGRAPHS = ("Paper:", "Rule:", "State:", "When to use it:", "What goes wrong elsewhere:", "Confirmed:")
"""What every card says, in this order."""

COLUMNS = (
    *("algorithm", "year", "timing", "data", "server keeps", "clients keep", "more down", "more up"),
    *("robust", "sum-only", "private", "certificate", "confirmed by"),
)


def card_named(name: str) -> str:
    """The card of an algorithm: the head of the file that adds it.

    Args:
        name: the algorithm's name, as `asyncfed list strategies` has it.

    Returns:
        The text, without a line break at its end. Of a strategy that has a kind only, and no name of its own, it is the
        description of its class.

    Raises:
        ConfigError: there is no such algorithm; it suggests the nearest name.
    """
    if name not in algorithms() and name in kinds("strategy"):
        return inspect.cleandoc(kinds("strategy")[name].__doc__ or "")
    if name not in algorithms():
        raise ConfigError(f'There is no algorithm "{name}". {did_you_mean(name, algorithms())}')
    return inspect.cleandoc(import_module(module_of(name)).__doc__ or "")


def attack_card(name: str) -> str | None:
    """The card of an attack, the head of the file that it is in; None if there is no attack of this name."""
    made = kinds("attack").get(name)
    return None if made is None else inspect.cleandoc(import_module(made.__module__).__doc__ or "")


def fact_lines(name: str) -> list[tuple[str, str]]:
    """What the table says of an algorithm, as words and values; nothing of one that is not in it."""
    if name not in algorithms():
        return []
    algorithm = algorithm_named(name)
    return [
        ("timing", f"{algorithm.timing}, {algorithm.year}"),
        ("reaches the optimum of", _DATA_WORDS[algorithm.data]),
        ("kept at the server", _vectors(algorithm.server_memory)),
        ("kept at clients", _vectors(algorithm.client_memory)),
        ("sent beside the model", f"down {_vectors(algorithm.extra_down)}, up {_vectors(algorithm.extra_up)}"),
        ("robust against clients that lie", _yes(algorithm.robust)),
        ("sums are enough (secure aggregation)", _yes(is_sum_only(algorithm))),
        ("private", _yes(algorithm.private)),
        ("certificate", algorithm.certificate or "none"),
        ("confirmed by", algorithm.evidence),
    ]


def is_sum_only(algorithm: Algorithm) -> bool:
    """Whether weighted sums are enough for the strategy as it is made by name, for ten tickets."""
    return why_single_updates(algorithm.make(10, Work(), DelayAware())) is None


def algorithm_table(chosen: Sequence[Algorithm] | None = None) -> str:
    """The table of all algorithms in Markdown, by family.

    Args:
        chosen: only these; None for all.

    Returns:
        Its lines, ending with a line break. Names link to the cards below the table.
    """
    rows = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    known = list(algorithms().values()) if chosen is None else list(chosen)
    for family in FAMILIES:
        members = [algorithm for algorithm in known if algorithm.family == family]
        rows += [f"| **{family}** |" + " |" * (len(COLUMNS) - 1)] if members else []
        rows += [_row(algorithm) for algorithm in members]
    return "\n".join(rows) + "\n"


def cards_page() -> str:
    """Every card in Markdown, by family; algorithms of one file share a card."""
    sections: list[str] = []
    for family in FAMILIES:
        names: dict[str, list[str]] = {}
        for algorithm in algorithms().values():
            if algorithm.family == family:
                names.setdefault(module_of(algorithm.name), []).append(algorithm.name)
        sections += [f"## Cards: {family}\n"] if names else []
        for module, own in names.items():
            title, _, body = card_named(own[0]).partition("\n")
            codes = ", ".join(f"`{name}`" for name in own)
            file = f"[{module.rpartition('.')[2]}.py](../src/{module.replace('.', '/')}.py)"
            sections.append(f"### {heading(own[0])}\n\n{codes} in {file}. {title}\n{body}\n")
    return "\n".join(sections)


def heading(name: str) -> str:
    """The heading of the card that an algorithm shares with the others of its file: the first of their names."""
    module = module_of(name)
    return next(other for other in algorithms() if module_of(other) == module)


_DATA_WORDS = {
    "any": "all clients, whatever their data",
    "similar": "all clients as far as their data are alike",
    "the same": "all clients if their data have the same distribution",
}


def _row(algorithm: Algorithm) -> str:
    cells = [
        f"[{algorithm.name}](#{heading(algorithm.name)})",
        str(algorithm.year),
        {"asynchronous": "async", "synchronous": "sync", "semi-synchronous": "semi"}.get(
            algorithm.timing, algorithm.timing
        ),
        algorithm.data,
        _short(algorithm.server_memory),
        _short(algorithm.client_memory),
        _short(algorithm.extra_down),
        _short(algorithm.extra_up),
        _mark(algorithm.robust),
        _mark(is_sum_only(algorithm)),
        _mark(algorithm.private),
        algorithm.certificate or "–",
        algorithm.evidence,
    ]
    return "| " + " | ".join(cells) + " |"


def _short(amount: str) -> str:
    return "–" if amount == "0" else amount


def _vectors(amount: str) -> str:
    """An amount in words: a number, or letters for one, counts vectors as long as the model.

    >>> _vectors("0"), _vectors("1"), _vectors("2n"), _vectors("a number")
    ('nothing', '1 vector', '2n vectors', 'a number')
    """
    if amount == "0":
        return "nothing"
    if " " in amount:
        return amount
    return f"{amount} vector{'s'[: amount != '1']}"


def _mark(value: bool) -> str:
    return "yes" if value else "–"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
