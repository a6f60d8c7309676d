"""Columns as a pandas data frame: the only place outside the data sets that imports pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from asyncfed.core.errors import ConfigError

if TYPE_CHECKING:
    import pandas


def to_frame(columns: Mapping[str, Any]) -> pandas.DataFrame:
    """A data frame with these columns, in their order.

    Args:
        columns: arrays or lists of one length, by name.

    Returns:
        The data frame; pandas is imported when this is called.

    Raises:
        ConfigError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise ConfigError("A data frame needs pandas: pip install pandas, or use the columns as arrays.") from error
    return pandas.DataFrame(dict(columns))
