"""Short measurements are made at once, long ones in a thread."""

import threading
import time

import pytest

from asyncfed.runs.measuring_thread import SHORT_SECONDS, MeasuringThread


def where(seconds=0.0):
    time.sleep(seconds)
    return {"main": float(threading.current_thread() is threading.main_thread())}


def test_a_measurement_that_took_long_is_made_in_a_thread_the_next_time():
    with MeasuringThread() as thread:
        assert thread.submit(where).result()["main"]
        assert thread.submit(lambda: where(2 * SHORT_SECONDS)).result()["main"]  # nobody knew
        assert not thread.submit(where).result()["main"]
        assert thread.submit(where).result()["main"]


def test_errors_are_raised_where_the_result_is_taken():
    def fail():
        raise ValueError("no")

    with MeasuringThread() as thread, pytest.raises(ValueError, match="no"):
        thread.submit(fail).result()
