"""Every error AsyncFed raises on purpose. Each says whose fault it is, the value, the limit and the next step."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class AsyncFedError(Exception):
    """The root of all errors raised on purpose."""


class ConfigError(AsyncFedError, ValueError):
    """The experiment was described wrongly: the user can mend it."""


class DataError(AsyncFedError, ValueError):
    """The data cannot be used as they are: the user can mend them."""


class ProtocolError(AsyncFedError):
    """A client broke the rules: an unknown, duplicate or foreign ticket."""


class StrategyError(AsyncFedError):
    """A strategy (ours or the user's) asked for something impossible."""


class DelayError(AsyncFedError):
    """A delay model answered with something that is not a duration."""


class JournalError(AsyncFedError):
    """A run's file is missing, damaged, foreign, or does not fit what was asked of it."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that suggests the nearest known word, or lists them all.

    >>> did_you_mean("regresion", ["regression", "svm"])
    'Did you mean "regression"?'
    >>> did_you_mean("zzz", ["regression", "svm"])
    'Known: regression, svm.'
    """
    names = sorted(known)
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    return f'Did you mean "{near[0]}"?' if near else f"Known: {', '.join(names)}."
