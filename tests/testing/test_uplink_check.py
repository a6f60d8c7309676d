"""`check_uplink` refuses what is broken and says why; uplinks/test_conformance.py shows what it accepts."""

from itertools import count
from typing import ClassVar

import numpy as np
import pytest

from asyncfed import registry
from asyncfed.core.record import Config
from asyncfed.testing import check_uplink
from asyncfed.uplinks import TopK
from asyncfed.uplinks.chain import take


class Sound(Config, tag_field="kind", tag="sound_uplink"):
    """An uplink that passes: whole numbers go, the rest stays behind. The broken ones below are it."""

    remembers = True

    def init(self, num_params, dtype):
        return {"residual": np.zeros(num_params, dtype)}

    def size(self, num_params, itemsize):
        return num_params * itemsize

    def encode(self, memory, change, key):
        wanted = memory["residual"] + change
        whole = np.trunc(wanted)
        return {"whole": whole}, {"residual": wanted - whole}

    def decode(self, message, num_params, dtype):
        return take(message, "whole", (num_params,), dtype).copy()


@pytest.fixture
def known(monkeypatch):
    """`known(cls)`: an uplink of this class, registered while the test lasts."""

    def make(made):
        monkeypatch.setitem(registry._parts["uplink"].members, made.__struct_config__.tag, made)
        return made()

    return make


def test_the_uplink_the_broken_ones_are_made_from_passes(known):
    check_uplink(known(Sound))
    check_uplink(known(Sound), seed=5)


class Silent(Sound, tag_field="kind", tag="silent"):
    """Sends nothing at times; how much is then known only afterwards."""

    def size(self, num_params, itemsize):
        return None

    def encode(self, memory, change, key):
        if key % 2:
            return None, {"residual": memory["residual"] + change}
        return super().encode(memory, change, key)


def test_one_that_sends_nothing_at_times_passes(known):
    check_uplink(known(Silent))


class SilentAtFullPrice(Silent, tag_field="kind", tag="silent_at_full_price"):
    def size(self, num_params, itemsize):
        return num_params * itemsize


class ForgetsToRemember(Sound, tag_field="kind", tag="forgets_to_remember"):
    remembers = False


class ChangesItsMemory(Sound, tag_field="kind", tag="changes_its_memory"):
    def encode(self, memory, change, key):
        memory["residual"] += change
        return {"whole": np.trunc(memory["residual"])}, {"residual": memory["residual"] % 1.0}


class ChangesTheChange(Sound, tag_field="kind", tag="changes_the_change"):
    def encode(self, memory, change, key):
        change += memory["residual"]
        return super().encode({"residual": np.zeros_like(change)}, change, key)


class LosesSomething(Sound, tag_field="kind", tag="loses_something"):
    def encode(self, memory, change, key):
        message, _ = super().encode(memory, change, key)
        return message, {"residual": change - np.trunc(change)}


class OtherMemory(Sound, tag_field="kind", tag="other_memory"):
    def encode(self, memory, change, key):
        message, after = super().encode(memory, change, key)
        return message, {**after, "more": np.zeros(1)}


class WrongSize(Sound, tag_field="kind", tag="wrong_size"):
    def size(self, num_params, itemsize):
        return num_params * 8


class Widens(Sound, tag_field="kind", tag="widens_uplink"):
    def decode(self, message, num_params, dtype):
        return super().decode(message, num_params, dtype).astype(np.float64)


class KeyErrors(Sound, tag_field="kind", tag="key_errors"):
    def decode(self, message, num_params, dtype):
        return message["whole"].copy()


class TakesAnyShape(Sound, tag_field="kind", tag="takes_any_shape"):
    def decode(self, message, num_params, dtype):
        if "whole" not in message:
            raise ValueError("nothing there")
        return np.resize(message["whole"], num_params).astype(dtype)


class HidesNaN(Sound, tag_field="kind", tag="hides_nan"):
    def decode(self, message, num_params, dtype):
        return np.nan_to_num(super().decode(message, num_params, dtype))


COUNTER = count()


class DependsOnTheClock(Sound, tag_field="kind", tag="clock_uplink"):
    def encode(self, memory, change, key):
        return {"whole": change + next(COUNTER)}, memory


class SendsWords(Sound, tag_field="kind", tag="sends_words"):
    def encode(self, memory, change, key):
        return {"whole": np.array(["a"])}, memory


class Halves(TopK, tag_field="kind", tag="halves"):
    """All but half of each entry, which is biased and leaves out a quarter of |v|²: what it says is true."""

    fraction: float = 1.0
    claimed_contraction: ClassVar[float | None] = 0.75
    claimed_variance: ClassVar[float | None] = None

    def encode(self, memory, change, key):
        return super().encode(memory, change / 2, key)

    def contraction(self, num_params):
        return self.claimed_contraction

    def variance(self, num_params):
        return self.claimed_variance


class ClaimsToBeNear(Halves, tag_field="kind", tag="claims_to_be_near"):
    claimed_contraction: ClassVar[float | None] = 0.8


class ClaimsNothingIsLost(Halves, tag_field="kind", tag="claims_nothing_is_lost"):
    claimed_variance: ClassVar[float | None] = 0.1


class ClaimsToBeUnbiased(Halves, tag_field="kind", tag="claims_to_be_unbiased"):
    claimed_variance: ClassVar[float | None] = 1.0


class ClaimsTheImpossible(Halves, tag_field="kind", tag="claims_the_impossible"):
    claimed_contraction: ClassVar[float | None] = 0.0


def test_a_codec_whose_constants_are_true_passes(known):
    check_uplink(known(Halves))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (ClaimsToBeNear, "0.25 .* in the mean of 200 draws; contraction says at most 0.2"),
        (ClaimsNothingIsLost, "0.25 .* in the mean of 200 draws; variance says at most 0.1"),
        (ClaimsToBeUnbiased, "the mean of 200 draws is 0.5 .* from v; variance says that it is unbiased"),
        (ClaimsTheImpossible, "contraction is 0.0; it must be in"),
        (SilentAtFullPrice, "nothing is sent where size says .* bytes; size must say None"),
        (ForgetsToRemember, r"remembers is False, but init gives \['residual'\]"),
        (ChangesItsMemory, "encode changed residual in place"),
        (ChangesTheChange, "encode changed the change in place"),
        (LosesSomething, "what was sent and the residual are .* apart from the sum of all changes"),
        (OtherMemory, r"encode leaves a memory of \['more', 'residual'\]; init made one of \['residual'\]"),
        (WrongSize, "a message has 4 bytes; size says 8"),
        (Widens, "what decode gives holds float64; it must hold float32"),
        (KeyErrors, 'decode raises KeyError for a message that lacks "whole"; it must raise ValueError'),
        (TakesAnyShape, 'decode accepts a message whose "whole" is'),
        (HidesNaN, 'decode makes a finite change of a message with NaN in "whole"'),
        (DependsOnTheClock, "the same change and the same key give another message"),
        (SendsWords, 'a message holds <U1 as "whole"; only numbers can be stored'),
    ],
)
def test_what_is_broken_is_refused(known, made, message):
    with pytest.raises(AssertionError, match=message):
        check_uplink(known(made))


def test_one_that_is_not_registered_is_refused():
    with pytest.raises(AssertionError, match="is it a Config with a tag, and registered"):
        check_uplink(Sound())
