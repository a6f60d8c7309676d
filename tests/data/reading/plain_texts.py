"""The slow twin of `asyncfed.data.reading.text_columns`: the same rules, one text after another, in plain Python."""

import math
import re
from datetime import UTC, datetime

BOOLEANS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d*)?([eE][+-]?\d+)?", re.ASCII)
THOUSANDS = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
NAN = float("nan")


def meaning_of(texts, missing, as_category=False, delimiter=","):
    """`(kind, values, writing)`; values of a category are the texts, None where missing. None: a text among numbers."""
    trimmed = [None if text is None or text.strip() in missing else text.strip() for text in texts]
    known = [text for text in trimmed if text is not None]
    if as_category:
        return "category", trimmed, "plain"
    if all(number(text) is not None for text in known):
        return "number", [NAN if text is None else number(text) for text in trimmed], "plain"
    ways = [("thousands separator", THOUSANDS, thousands), ("decimal comma", DECIMAL_COMMA, decimal_comma)]
    for writing, pattern, plain in ways if delimiter == "," else reversed(ways):
        if all(pattern.fullmatch(text) and number(plain(text)) is not None for text in known):
            return "number", [NAN if text is None else number(plain(text)) for text in trimmed], writing
    if all(text.lower() in BOOLEANS for text in known):
        return "boolean", [NAN if text is None else BOOLEANS[text.lower()] for text in trimmed], "plain"
    if all(moment(text) is not None for text in known):
        zone = "time zone" if any(moment(text).tzinfo for text in known) else "plain"
        return "date", [NAN if text is None else days(moment(text)) for text in trimmed], zone
    if 2 * sum(number(text) is not None for text in known) > len(known):
        return None
    return "category", trimmed, "plain"


def number(text):
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def thousands(text):
    return text.replace(",", "")


def decimal_comma(text):
    return text.replace(".", "").replace(",", ".")


def moment(text):
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def days(at):
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400
