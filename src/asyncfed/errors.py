"""The errors AsyncFed raises on purpose, for users to catch."""

from asyncfed.core.errors import (
    AsyncFedError,
    ConfigError,
    DataError,
    DelayError,
    JournalError,
    ProtocolError,
    StrategyError,
)

__all__ = [
    "AsyncFedError",
    "ConfigError",
    "DataError",
    "DelayError",
    "JournalError",
    "ProtocolError",
    "StrategyError",
]
