"""A function that does not return fails, and one that is called often does not."""

import time

import pytest

from lasp_edge.checking.endless import limited

LOOK_S = 0.02


def waits():
    while True:
        pass


def test_a_call_that_does_not_return_fails_and_the_next_one_sooner():
    with limited(look_s=LOOK_S):
        with pytest.raises(TimeoutError, match=r"it did not return within 0\.1 s"):
            waits()
        with pytest.raises(TimeoutError, match=r"it did not return within 0\.02 s"):
            time.sleep(waits())


def test_calls_that_return_may_be_many():
    def returns(number):
        return number + 1

    with limited(look_s=LOOK_S):
        while returns(0) < 1:
            pass
