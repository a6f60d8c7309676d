"""Events written by compiled code have the bytes of `pack_rows`."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from asyncfed.core.record import pack_rows
from asyncfed.kernels.event_rows import LONGEST_ROW, put_row

whole = st.integers(-1, 2**62) | st.sampled_from([0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32])
real = st.floats(allow_nan=False)


@given(st.integers(0, 2**62), real, st.integers(0, 11), whole, whole, whole, st.booleans(), real, real, whole)
@example(2**63 - 1, -0.0, 11, 2**63 - 1, 2**63 - 1, 2**63 - 1, True, 5e-324, float("inf"), 2**63 - 1)
def test_a_row_is_packed_alike(seq, time, kind, ticket, client, version, has_numbers, a, b, detail):
    out, room = np.zeros(LONGEST_ROW, np.uint8), np.empty(1)
    end = put_row(out, 0, room, seq, time, kind, ticket, client, version, has_numbers, a, b, detail)
    numbers = (a, b) if has_numbers else (None, None)
    ids = [None if value < 0 else value for value in (ticket, client, version, detail)]
    assert out[:end].tobytes() == pack_rows([(seq, time, kind, *ids[:3], *numbers, ids[3])])
