"""What takes long is announced, and what does not is not."""

import threading

from lasp_edge.tool.announcing import announced
from tests.brokers import PATIENCE_S


def timers():
    return [each for each in threading.enumerate() if isinstance(each, threading.Timer)]


def test_what_takes_long_is_announced_once(capsys):
    with announced("tries the laws of fold here", after_s=0.1):
        for timer in timers():
            timer.join(PATIENCE_S)
    assert capsys.readouterr().err == "tries the laws of fold here\n"


def test_what_is_done_in_time_is_not_announced_and_leaves_nothing(capsys):
    with announced("tries the laws of fold here", after_s=3_600):
        (timer,) = timers()
    timer.join(PATIENCE_S)
    assert not timer.is_alive()
    assert capsys.readouterr().err == ""
