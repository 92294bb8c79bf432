"""The page over real sockets: what is asked in HTTP is answered by the loop, or with a reason."""

import contextlib
import socket
import threading
import urllib.error
import urllib.request

import pytest

from lasp_edge.metrics import page as page_module
from lasp_edge.metrics.page import Page, Reply
from tests.brokers import PATIENCE_S


class Loop:
    """A loop that turns the page when it is woken."""

    def __init__(self):
        self.woken = threading.Event()
        self.page = Page("127.0.0.1", 0, self.woken.set)
        self._ends = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._ends:
            self.woken.wait()
            self.woken.clear()
            self.page.turn(lambda path: Reply(200, "text/plain", f"you asked for {path}"))

    def stop(self):
        self._ends = True
        self.woken.set()
        self._thread.join()


@pytest.fixture
def loop():
    loop = Loop()
    yield loop
    loop.stop()
    loop.page.close()


def raw(port, request):
    """Return what comes back for the bytes of a request."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as sock:
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := sock.recv(4096):
            answer += piece
    return answer


def test_the_loop_answers(loop):
    for path in ("/metrics", "/healthz?verbose=1"):
        url = f"http://127.0.0.1:{loop.page.port}{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            assert answer.read().decode() == f"you asked for {path.partition('?')[0]}"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed"),
        (b"\x16\x03\x01\x02\x00\x01\x00", b"400 Bad Request"),
        (b"", b"400 Bad Request"),
        (b"GET /metrics\r\n\r\n", b"400 Bad Request"),
        (b"GET " + b"/" * 60_000, b"400 Bad Request"),
    ],
    ids=["post", "tls", "nothing", "no version", "too long"],
)
def test_what_is_no_question_is_refused_and_the_next_is_answered(loop, request_bytes, status):
    try:
        answer = raw(loop.page.port, request_bytes)
    except OSError:  # the agent hung up before all was sent
        assert len(request_bytes) > 10_000
    else:
        assert answer.startswith(b"HTTP/1.1 " + status)
    assert raw(loop.page.port, b"GET /x HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\nyou asked for /x")


def test_who_asks_slowly_keeps_nobody_waiting(loop, monkeypatch):
    monkeypatch.setattr(page_module, "PATIENCE_S", 1_000.0)
    port = loop.page.port
    with contextlib.ExitStack() as slow:
        for _ in range(2 * page_module.MOST_ASKERS):
            asker = slow.enter_context(socket.create_connection(("127.0.0.1", port)))
            asker.sendall(b"G")
            assert raw(port, b"GET /healthz HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_a_loop_that_stands_still_is_told(monkeypatch):
    monkeypatch.setattr(page_module, "PATIENCE_S", 0.05)
    page = Page("127.0.0.1", 0, lambda: None)
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://127.0.0.1:{page.port}/healthz", timeout=PATIENCE_S)
    page.close()


def test_a_closed_page_lets_go_of_its_port():
    page = Page("127.0.0.1", 0, lambda: None)
    page.close()
    Page("127.0.0.1", page.port, lambda: None).close()
