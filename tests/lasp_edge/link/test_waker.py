"""A thread that is woken finds all work that was left before, however the two meet."""

import select
import socket

import pytest

from lasp_edge.link.waker import Waker


@pytest.mark.parametrize("comes", ["before the byte is taken", "after the byte is taken"])
def test_who_wakes_while_the_thread_wakes_up_is_not_the_last(monkeypatch, comes):
    take, waker = socket.socket.recv, Waker()

    def meet(self, size):
        if comes.startswith("before"):
            waker.wake()
        taken = take(self, size)
        if comes.startswith("after"):
            waker.wake()
        return taken

    poller = select.poll()
    poller.register(waker, select.POLLIN)
    monkeypatch.setattr(socket.socket, "recv", meet, raising=False)
    waker.wake()
    waker.clear()  # the thread looks for work after it
    waker.wake()
    assert poller.poll(0)
    waker.close()


def test_to_wake_is_void_after_the_end():
    waker = Waker()
    waker.close()
    waker.wake()
