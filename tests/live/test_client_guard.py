"""What a client refuses by itself, whatever the server asks for."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.live.client_guard import LARGEST_CLIP, SMALLEST_CLIP, LeastNoise, RefusedTask
from asyncfed.uplinks import Clip, LocalNoise, TopK

GUARD = LeastNoise(multiplier=2.0, uploads=3)
WORK = Work(uplink=(LocalNoise(clip=0.5, multiplier=2.0),))


@pytest.mark.parametrize(
    "work",
    [
        WORK,
        replace(WORK, uplink=(LocalNoise(clip=SMALLEST_CLIP, multiplier=2.0),)),
        replace(WORK, uplink=(LocalNoise(clip=LARGEST_CLIP, multiplier=9.0), TopK())),
        replace(WORK, downlink=TopK(), loss=False),
    ],
)
def test_enough_noise_is_accepted_whatever_the_clip_and_what_comes_after(work):
    GUARD.check_work(work)


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (Work(), r"first uplink is nothing; this client's must be LocalNoise. Ask .* privacy.kind"),
        (replace(WORK, uplink=(TopK(), *WORK.uplink)), "first uplink is TopK"),
        (replace(WORK, uplink=(Clip(),)), "first uplink is Clip"),
        (replace(WORK, uplink=(LocalNoise(multiplier=0.0),)), "noise of 0 clips; this client adds 2 at least. Ask"),
        (replace(WORK, uplink=(LocalNoise(multiplier=1.99),)), "noise of 1.99 clips; this client adds 2 at least"),
        (replace(WORK, uplink=(LocalNoise(clip=5e-324, multiplier=2.0),)), "a clip of .*; this client takes 1e-30 to"),
        (replace(WORK, uplink=(LocalNoise(clip=1e300, multiplier=2.0),)), r"a clip of 1e\+300"),
        (replace(WORK, loss=True), "asks for work.loss, which tells something about this client's data"),
        (replace(WORK, start_loss=True, start_rms=True), "asks for work.start_loss, work.start_rms, which"),
        (replace(WORK, patience=2), "asks for work.patience"),
        (replace(WORK, start="own"), 'asks for work.start = "own"'),
    ],
)
def test_work_that_tells_more_is_refused_and_the_message_says_what_to_do(work, why):
    with pytest.raises(RefusedTask, match=f"^The server asks for .*{why.removeprefix('asks for ')}"):
        GUARD.check_work(work)


def test_noise_of_the_smallest_clips_would_round_to_nothing():
    """Why they are refused: the noise is gone, and signs of the change are not."""
    sent = LocalNoise(clip=5e-324, multiplier=0.4).encode({}, np.array([1.0]), key=1)[0]["change"]
    assert sent[0] == 5e-324


def test_so_many_uploads_and_no_more():
    GUARD.check_uploads(2)
    with pytest.raises(RefusedTask, match="asks for upload 4 of this client, which makes 3 at most"):
        GUARD.check_uploads(3)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"multiplier": 0.0, "uploads": 1}, "least noise is 0.0; it must be a positive number"),
        ({"multiplier": float("nan"), "uploads": 1}, "least noise is nan"),
        ({"multiplier": 1.0, "uploads": 0}, "most uploads are 0; they must be 1 or more"),
    ],
)
def test_limits_that_limit_nothing_are_refused(limits, why):
    with pytest.raises(ConfigError, match=why):
        LeastNoise(**limits)
