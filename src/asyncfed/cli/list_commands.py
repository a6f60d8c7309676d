"""Commands about what has a name: list names it all with a line each, presets prints one as TOML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from asyncfed.cli.output import console, print_line
from asyncfed.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from asyncfed.problems import LinearModel, SoftmaxModel

USES = {
    "presets": "asyncfed run NAME",
    "strategies": "--strategy NAME",
    "problems": "--problem NAME",
    "delays": "--delays NAME",
    "data": "asyncfed run NAME",
    "samplers": "strategy.sampler.kind in TOML",
    "discounts": "strategy.discount.kind in TOML",
    "schedules": "strategy.schedule.kind in TOML",
    "rules": "strategy.rule.kind in TOML",
    "optimisers": "strategy.rule.optimiser.kind in TOML",
    "uplinks": "strategy.work.uplink in TOML",
    "attacks": "--attack NAME",
    "privacy": "--privacy NAME",
    "splits": "split.kind in TOML",
    "distributions": "delays.compute.kind in TOML",
    "availabilities": "delays.availability.kind in TOML",
    "variations": "delays.variation.kind in TOML",
}
"""What can be listed, and how one of them is named."""

LOSSES = {
    "least_squares": "a number: linear regression, half the squared error",
    "mse": "a number: linear regression, the squared error",
    "logistic": "two classes: logistic regression",
    "softmax": "several classes: multi-class logistic regression",
    "hinge": "two classes: linear support vector machine, hinge loss",
    "squared_hinge": "two classes: linear support vector machine, squared hinge loss",
}
"""What linear models predict, by their loss."""

IN_TOML = {
    "problems": " (model.kind in TOML)",
    "delays": " (delays.kind in TOML)",
    "data": " (data.kind in TOML)",
}
"""Of lists that hold more than the option can name: how the others are named."""


def list_names(
    what: Annotated[str | None, typer.Argument(help=f"One of: {', '.join(USES)}.", show_default="all of them")] = None,
) -> None:
    """List strategies, problems, delays, data and presets by name.

    Also the parts that a TOML file names by their kind, those of --import and of installed packages included.
    """
    if what is not None and what not in USES:
        raise ConfigError(f'There is no list of "{what}". {did_you_mean(what, USES)}')
    for section in USES if what is None else (what,):
        _print_names(section, _names_of(section))


def presets(name: Annotated[str | None, typer.Argument(help="The preset.", show_default="list them")] = None) -> None:
    """Print a preset as TOML, to be changed and run."""
    from asyncfed.experiment import to_toml
    from asyncfed.presets import preset

    if name is None:
        list_names("presets")
        return
    print(to_toml(preset(name)()))


def card(
    name: Annotated[
        str, typer.Argument(help="The algorithm or attack, as `asyncfed list strategies` or `list attacks` has it.")
    ],
) -> None:
    """Print the card of an algorithm: paper, rule, when to use it, what goes wrong elsewhere, what was confirmed.

    Of an attack: what liars send, what they know, the paper, and what it aims at.
    """
    from asyncfed.presets.algorithm_cards import attack_card, card_named, fact_lines

    attack = attack_card(name)
    if attack is not None:
        print(attack)
        return
    text = card_named(name)
    facts = fact_lines(name)
    width = max((len(words) for words, _ in facts), default=0)
    print(text)
    if facts:
        print()
    for words, value in facts:
        print(f"{words:{width}}  {value}")


def _names_of(section: str) -> dict[str, str]:
    """Names and what they stand for: ready-made ones first, then parts that are registered by their kind."""
    from asyncfed.presets import BUILT_IN, DELAYS, PRESETS, PROBLEMS, STRATEGIES
    from asyncfed.registry import kinds

    tables: dict[str, dict[str, str]] = {
        "presets": {name: words for name, (words, *_) in PRESETS.items()},
        "strategies": {name: words for name, (words, *_) in STRATEGIES.items()},
        "problems": {name: _model_words(model) for name, model in PROBLEMS.items()},
        "delays": {name: words for name, (words, *_) in DELAYS.items()},
        "data": {name: words for name, (words, *_) in BUILT_IN.items()},
    }
    ready = tables.get(section, {})
    plurals = {
        "strategies": "strategy",
        "delays": "delays",
        "data": "data",
        "privacy": "privacy",
        "availabilities": "availability",
    }
    part = plurals.get(section, section[:-1])
    registered = {} if section == "presets" else kinds(part)
    in_toml = IN_TOML.get(section, "")
    return ready | {
        kind: first_sentence(made.__doc__ or "") + in_toml for kind, made in registered.items() if kind not in ready
    }


def first_sentence(docstring: str) -> str:
    """The first sentence of a docstring, on one line.

    >>> first_sentence("Mixes models: on\\n    arrival. Then waits.")
    'Mixes models: on arrival'
    """
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    return re.split(r"(?<=\S)\.(?=\s+[^\sa-z]|\s*$)", paragraph, maxsplit=1)[0].rstrip(":;,")


def _model_words(model: LinearModel | SoftmaxModel) -> str:
    loss = getattr(model, "loss", "softmax")
    return LOSSES[loss] + (", with an l2 penalty" if model.l2 else "")


def _print_names(section: str, words: Mapping[str, str]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(section, escape(USES[section]), box=None, pad_edge=False, header_style="bold")
    table.columns[0].no_wrap = True
    for key, text in words.items():
        table.add_row(key, escape(text))
    console.print(table, highlight=False)
    print_line("")
