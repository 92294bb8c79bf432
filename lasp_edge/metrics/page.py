"""A page that a program on this machine reads: a question comes in by HTTP, the loop answers it.

The questions wait for the process's own loop, so that one thread alone looks at what it reports;
nothing is made ready that nobody asks for. A loop that stands still gives no answer, and the asker
hears 503.

`http.server` does the same and takes 9.7 MiB of memory, a third of an agent's, so these are the few
lines of HTTP that a GET needs.

Source: RFC 9112, "HTTP/1.1", June 2022.
"""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
MOST_PIECES = 8
"""Pieces of a request, at most."""
MOST_ASKERS = 8
"""Askers at one time, at most, each with a thread: one that is slow keeps no other waiting. Of more
the first is dropped."""
PATIENCE_S = 5.0
"""Seconds that an asker takes to ask, and the loop to answer, at most."""
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class Reply(NamedTuple):
    """An answer: the HTTP status, the type of the text, and the text."""

    status: int
    kind: str
    text: str


def no_such_page(path: str, paths: Sequence[str]) -> Reply:
    """Return the answer to a request for a path that is not among the page's."""
    return _plain(404, f"nothing is at {path}; there are {' and '.join(paths)}")


class _Question(NamedTuple):
    path: str
    reply: "SimpleQueue[Reply]"


class Page:
    """Listens on an address of this machine.

    Args:
        host: where to listen; a loopback address, unless others are to read.
        port: the port; 0 for any that is free.
        wake: makes the loop turn.

    Attributes:
        port: the port.

    Raises:
        OSError: the address is taken, or not of this machine.
    """

    def __init__(self, host: str, port: int, wake: Callable[[], None]) -> None:
        self._questions: SimpleQueue[_Question] = SimpleQueue()
        self._wake = wake
        self._askers: list[socket.socket] = []
        self._listener = socket.create_server((host, port))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, name="page", daemon=True).start()

    def turn(self, answer: Callable[[str], Reply]) -> None:
        """Reply what was asked since the last turn; called by the loop."""
        with contextlib.suppress(Empty):
            while True:
                question = self._questions.get_nowait()
                question.reply.put(answer(question.path))

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                asker, _ = self._listener.accept()
            except OSError:  # closed
                return
            self._askers = [*self._askers, asker]
            if len(self._askers) > MOST_ASKERS:
                with contextlib.suppress(OSError):  # it was answered
                    self._askers.pop(0).shutdown(socket.SHUT_RDWR)
            threading.Thread(target=self._serve, args=(asker,), name="asker", daemon=True).start()

    def _serve(self, asker: socket.socket) -> None:
        with asker, contextlib.suppress(OSError):
            asker.settimeout(PATIENCE_S / MOST_PIECES)
            request = _request(asker)
            asker.settimeout(PATIENCE_S)
            asker.sendall(_response(self._answer(request)))
        with contextlib.suppress(ValueError):  # it was dropped
            self._askers.remove(asker)

    def _answer(self, request: bytes) -> Reply:
        method, _, rest = request.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        path, _, version = rest.partition(" ")
        if not version.startswith("HTTP/1."):
            return _plain(400, "an HTTP/1.1 request is needed")
        if method != "GET":
            return _plain(405, f"GET is needed, not {method}")
        question = _Question(path.partition("?")[0], SimpleQueue())
        self._questions.put(question)
        self._wake()
        try:
            return question.reply.get(timeout=PATIENCE_S)
        except Empty:
            return _plain(503, f"the loop has not turned for {PATIENCE_S:.0f} s")


def page_at(address: str, wake: Callable[[], None]) -> Page:
    """Return the page that an option `--metrics [HOST:]PORT` asks for.

    Args:
        address: as typed; without a host it is a loopback address.
        wake: makes the loop turn.

    Raises:
        ValueError: the page cannot be there.
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) >= 1 << 16:
        raise ValueError(f"--metrics: a port such as 9100, or HOST:PORT, not {address!r}")
    try:
        return Page(host or LOOPBACK, int(port), wake)
    except OSError as error:
        advice = "choose another port" if host in {"", LOOPBACK} else f"choose {LOOPBACK}:{port}"
        why = os.strerror(error.errno or 0)
        raise ValueError(f"--metrics {address}: {why}; {advice}") from None


def _request(asker: socket.socket) -> bytes:
    """Return a request up to its empty line, as far as it arrived."""
    request = b""
    for _ in range(MOST_PIECES):
        piece = asker.recv(2_048)
        request += piece
        if not piece or b"\r\n\r\n" in request:
            break
    return request


def _response(answer: Reply) -> bytes:
    body = answer.text.encode()
    reason = _REASONS.get(answer.status, "Service Unavailable")
    head = f"HTTP/1.1 {answer.status} {reason}\r\nContent-Type: {answer.kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def _plain(status: int, text: str) -> Reply:
    return Reply(status, "text/plain; charset=utf-8", f"{text}\n")
