"""FixedPointSum: its limits, what it counts, and that nothing but the sum reaches the wrapped rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import fields

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Payload, Work
from asyncfed.registry import kinds
from asyncfed.rules import Arrival, FixedPointSum, Mean, SecureAggregation
from asyncfed.rules.protocol import Rule
from asyncfed.testing import check_rule
from asyncfed.uplinks import Clip, TopK

PARAMS = np.array([1.0, -2.0, 0.5])


def arrivals(changes: list[list[float]], weights: list[float], starts: Any = None) -> list[Arrival]:
    starts = [PARAMS] * len(changes) if starts is None else starts
    return [
        Arrival(10 + i, i, weights[i], i, Work(), 1, 5, starts[i], starts[i] + np.array(change))
        for i, change in enumerate(changes)
    ]


def merge_of(group: list[Arrival], of: Payload = "delta", keep: float = 1.0) -> Merge:
    return Merge(tuple(a.ticket for a in group), tuple(a.weight for a in group), keep=keep, of=of)


def stepped(settings: SecureAggregation, group: list[Arrival], merge: Merge, key: int = 3) -> tuple[Any, Any]:
    merged, _, info = FixedPointSum(settings=settings).step({}, PARAMS, group, merge, key)
    return merged, info


CHANGES = [[0.25, -0.5, 0.125], [0.1, 0.2, 0.3], [-0.7, 0.0, 0.9]]


@pytest.mark.parametrize("rounding", ["nearest", "stochastic", "toward_zero"])
def test_check_rule_passes(rounding: Any) -> None:
    check_rule(FixedPointSum(settings=SecureAggregation(rounding=rounding, dropout=0.2, norm=0.5)))


@pytest.mark.parametrize(("of", "keep"), [("delta", 1.0), ("model", 0.0), ("model", 0.4)])
def test_with_enough_bits_it_is_the_mean(of: Payload, keep: float) -> None:
    group = arrivals(CHANGES, [0.2, 0.2, 0.2], [PARAMS, PARAMS + 0.5, PARAMS - 1.0])
    merge = merge_of(group, of, keep)
    plain, _, _ = Mean().step({}, PARAMS, group, merge, 3)
    merged, info = stepped(SecureAggregation(bits=62), group, merge)
    np.testing.assert_allclose(merged, plain, atol=1e-15)
    assert info == {}


def test_the_error_is_half_a_unit_for_each_member() -> None:
    group = arrivals(CHANGES, [1 / 3] * 3)
    plain, _, _ = Mean().step({}, PARAMS, group, merge_of(group), 3)
    settings = SecureAggregation(bits=10)
    unit = 2.0 ** -settings.fraction_bits_for(1.0, 3)
    merged, _ = stepped(settings, group, merge_of(group))
    assert 0 < np.abs(merged - plain).max() <= 3 * unit / 2


def test_dyadic_changes_are_summed_exactly() -> None:
    group = arrivals([[0.25, 0.5, -0.5], [0.5, -0.25, 0.75]], [0.5, 0.5])
    merged, _ = stepped(SecureAggregation(bits=8), group, merge_of(group))
    np.testing.assert_array_equal(merged - PARAMS, [0.375, 0.125, 0.125])


def test_a_sum_beyond_the_modulus_wraps_around_and_is_counted() -> None:
    group = arrivals([[0.9, 0.1, 0.0], [0.9, 0.1, 0.0]], [1.0, 1.0])
    merged, info = stepped(SecureAggregation(bits=8, fraction_bits=7), group, merge_of(group))
    assert info == {"wrapped": 1}
    np.testing.assert_allclose(merged - PARAMS, [2 * 115 / 128 - 2.0, 2 * 13 / 128, 0.0])


def test_left_to_itself_it_never_wraps() -> None:
    for bits in range(4, 20):
        for weight in (0.5, 1.0, 7.0):
            group = arrivals([[5.0, -5.0, 1.0]] * 3, [weight] * 3)
            _, info = stepped(SecureAggregation(bits=bits, limit=1.0), group, merge_of(group))
            assert "wrapped" not in info
            assert info["saturated"] == 6


def test_clipping_by_entries_and_by_norm() -> None:
    group = arrivals([[3.0, 4.0, 0.0]] * 2, [0.5, 0.5])
    by_entry, info = stepped(SecureAggregation(bits=40, limit=2.0), group, merge_of(group))
    np.testing.assert_allclose(by_entry - PARAMS, [2.0, 2.0, 0.0], atol=1e-9)
    assert info == {"saturated": 4}
    by_norm, info = stepped(SecureAggregation(bits=40, limit=2.0, norm=1.0), group, merge_of(group))
    np.testing.assert_allclose(by_norm - PARAMS, [0.6, 0.8, 0.0], atol=1e-9)
    assert info == {}


def test_what_is_no_number_is_sent_as_zero_and_counted() -> None:
    group = arrivals([[np.nan, np.inf, 0.5], [0.5, 0.5, 0.5]], [0.5, 0.5])
    merged, info = stepped(SecureAggregation(bits=40), group, merge_of(group))
    np.testing.assert_allclose(merged - PARAMS, [0.25, 0.75, 0.5], atol=1e-9)
    assert info == {"saturated": 2}


def test_a_member_that_drops_out_counts_as_no_change() -> None:
    group = arrivals([[0.5, 0.5, 0.5]] * 40, [1 / 40] * 40)
    settings = SecureAggregation(bits=50, dropout=0.25, threshold=0.5)
    for of, keep in (("delta", 1.0), ("model", 0.0)):
        merged, info = stepped(settings, group, merge_of(group, of, keep))  # type: ignore[arg-type]
        assert 3 <= info["dropped_out"] <= 20
        np.testing.assert_allclose(merged - PARAMS, 0.5 * (1 - info["dropped_out"] / 40), atol=1e-9)


@pytest.mark.parametrize(("of", "keep"), [("delta", 1.0), ("model", 0.0), ("model", 0.4)])
def test_a_group_below_the_threshold_is_lost(of: Payload, keep: float) -> None:
    stale = [PARAMS - 9.0] * 10
    group = arrivals([[0.5, 0.5, 0.5]] * 10, [(1.0 - keep if of == "model" else 1.0) / 10] * 10, stale)
    merged, info = stepped(SecureAggregation(dropout=0.5, threshold=0.95), group, merge_of(group, of, keep))
    np.testing.assert_allclose(merged, PARAMS, atol=1e-15)
    assert info["group_lost"] == 1


def test_a_sum_of_one_client_is_not_unmasked() -> None:
    group = [a._replace(client=4) for a in arrivals(CHANGES, [1 / 3] * 3)]
    merged, info = stepped(SecureAggregation(), group, merge_of(group))
    np.testing.assert_array_equal(merged, PARAMS)
    assert info == {"group_lost": 1}


class Peeking(Rule, Config, tag_field="kind", tag="peeking_for_sums"):
    """A rule that keeps what it is shown."""

    seen: list[Any]
    sum_only = True

    def step(self, memory: Any, params: Any, shown: Any, merge: Any, key: Any) -> Any:
        self.seen.append((shown, merge))
        return params, memory, {}


def test_the_wrapped_rule_sees_nothing_but_the_sum() -> None:
    one, other = arrivals(CHANGES, [1 / 3] * 3), arrivals([CHANGES[2], CHANGES[0], CHANGES[1]], [1 / 3] * 3)
    seen: list[Any] = []
    rule = FixedPointSum(settings=SecureAggregation(bits=24), rule=Peeking(seen=seen))  # type: ignore[arg-type]
    for group in (one, other):
        rule.step({}, PARAMS, group, merge_of(group), 3)
    ([first], merge), ([second], _) = seen
    np.testing.assert_array_equal(first.model, second.model)
    np.testing.assert_array_equal(first.start, 0.0)
    assert (first.client, first.weight, first.staleness, merge.weights) == (-1, 1.0, 2, (1.0,))


def test_bytes_are_bits_packed_and_keys_for_each_member() -> None:
    rule = FixedPointSum(settings=SecureAggregation(bits=12, bytes_per_member=100), members=7)
    assert rule.upload_size(num_params=3, num_clients=50) == 5 + 700
    assert FixedPointSum().upload_size(num_params=3, num_clients=50) == 12 + 96 * 50


def test_only_uplinks_that_send_whole_vectors_are_taken() -> None:
    taken = set()
    for kind, uplink in kinds("uplink").items():
        if not uplink.__module__.startswith("asyncfed."):
            continue
        made = uplink() if not any(f.required for f in fields(uplink)) else uplink(codec=TopK())
        try:
            FixedPointSum().check(Work(uplink=(made,)))
            taken.add(kind)
        except ConfigError:
            continue
    assert taken == {"clip", "whole", "local_noise"}


def test_what_does_not_sum_is_refused() -> None:
    rule = FixedPointSum()
    rule.check(Work(uplink=(Clip(norm=1.0),)))
    with pytest.raises(ConfigError, match="TopK, whose messages are something else"):
        rule.check(Work(uplink=(TopK(), Clip())))
    with pytest.raises(ConfigError, match=r'work.start = "server"'):
        rule.check(Work(start="own"))
    with pytest.raises(ConfigError, match="at least 2 updates"):
        rule.check_merge(1, 10)
    with pytest.raises(ConfigError, match="bits is 4, too few for a group of 10"):
        FixedPointSum(settings=SecureAggregation(bits=4)).check_merge(10, 10)
    with pytest.raises(ConfigError, match="members is 1"):
        FixedPointSum(members=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("bits", 1), ("bits", 63), ("fraction_bits", 63), ("limit", 0.0), ("norm", -1.0)),
        *(("dropout", 1.0), ("threshold", 1.1), ("bytes_per_member", -1)),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"secure_aggregation.{name} is"):
        SecureAggregation(**{name: value})


def test_the_bits_that_the_message_asks_for_are_enough() -> None:
    for members in range(2, 70):
        with_hint = SecureAggregation(bits=max(2, members.bit_length() + 2))
        assert with_hint.fraction_bits_for(1.0, members) >= 0
