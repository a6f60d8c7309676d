"""Uplinks: what a client does to its change before it sends it (clip, compress, keep what was left out)."""

from asyncfed.core.types import Uplink
from asyncfed.uplinks.clip import Clip
from asyncfed.uplinks.error_feedback import ErrorFeedback
from asyncfed.uplinks.top_k import TopK

__all__ = ["Clip", "ErrorFeedback", "TopK", "Uplink"]
