"""When it is time: the wall clock may be set back, and nothing may wait for it to come round."""


def is_time(now_us: int, next_us: int, every_us: int) -> bool:
    """Return whether what is due at `next_us`, every so often, is due now.

    >>> is_time(100, 90, 50), is_time(100, 110, 50), is_time(100, 99_999, 50)
    (True, False, True)
    """
    return not now_us < next_us <= now_us + every_us
