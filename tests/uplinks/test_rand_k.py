"""RandK: what it must not leave out."""

import numpy as np
import pytest

from asyncfed.uplinks import ErrorFeedback, RandK


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_what_is_not_finite_is_found_by_the_server_whichever_entries_are_drawn(bad, dtype):
    """Else it would stay in a residual for good, with a message that is accepted."""
    uplink = ErrorFeedback(codec=RandK(fraction=0.1, scaled=False))
    change = np.ones(50, dtype)
    change[7] = bad
    for key in range(5):
        message, _ = uplink.encode(uplink.init(50, change.dtype), change, key)
        assert not np.isfinite(uplink.decode(message, 50, change.dtype)).all()
