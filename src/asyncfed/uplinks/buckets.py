"""Codecs that cut a change into buckets, each with a scale of its own."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError


def check_bucket(value: int) -> None:
    """Refuse a negative size."""
    if value < 0:
        raise ConfigError(f"uplink.bucket is {value}; it must be 0 (the whole change) or the entries of a bucket.")


def bucket_size(bucket: int, num_params: int) -> int:
    """Entries of a bucket: at most all."""
    return min(bucket, num_params) if bucket else num_params


def bucket_count(bucket: int, num_params: int) -> int:
    """How many buckets there are; the last one may be shorter."""
    return -(-num_params // bucket_size(bucket, num_params))
