"""Serves the page, and sends it new texts as server-sent events.

It listens on a loopback address alone. A page of a stranger could still have its own name resolve
to that address (DNS rebinding) and read along; so whoever asks for another host than this one gets
no answer. The headers let the browser run, load and connect to nothing but this server.

Source: WHATWG, "HTML", section 9.2, server-sent events; W3C, "Content Security Policy Level 3".
"""

import contextlib
import logging
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from device_agent.console.dashboard.board import Board
from lasp_edge.errors import UsageError

log = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
HOSTS: Final = frozenset({"localhost", LOOPBACK, "::1"})
"""The hosts that may be asked for; through an SSH tunnel the port may be any."""
MOST_STREAMS = 32
"""Pages that are open at one time, at most: each has a thread."""
ALIVE_S = 5.0
"""Seconds after which a page is sent a sign of life, though nothing is new."""
PATIENCE_S = 20.0
"""Seconds that a browser takes to ask, or to take what it is sent, at most."""

_FOLDER: Final = Path(__file__).parent / "page"
_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    **{f"/{name}": (name, "text/javascript") for name in ("page.js", "nodes.js", "charts.js")},
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Path -> file and type: nothing else is served."""
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PageServer(ThreadingHTTPServer):
    """Serves the page of one board.

    Args:
        board: the texts that are shown.
        port: where to listen; 0 for any port that is free.

    Raises:
        UsageError: the port is taken.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, board: Board, port: int) -> None:
        self.board = board
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            other = port + 1 if 0 < port < (1 << 16) - 1 else 0
            raise UsageError(f"--port {port}: {why}; choose another one: --port {other}") from None
        self._thread = threading.Thread(target=self.serve_forever, name="page", daemon=True)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def start(self) -> None:
        """Serve, in threads."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no more, and end the streams."""
        self.board.close()
        if self._thread.is_alive():
            self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log what went wrong, unless a browser went away in the middle."""
        error = sys.exception()
        if not isinstance(error, OSError):
            log.warning("the page: %s: %s", type(error).__name__, error)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "lasp-edge", ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        """Answer a GET."""
        if not _is_ours(self.headers.get("Host", "")):
            self._answer(421, "text/plain; charset=utf-8", b"this page is only for localhost\n")
            return
        path = self.path.partition("?")[0]
        if path == "/events":
            self._send_events()
        elif path in _FILES:
            name, kind = _FILES[path]
            self._answer(200, kind, (_FOLDER / name).read_bytes())
        else:
            self._answer(404, "text/plain; charset=utf-8", b"nothing is here; the page is at /\n")

    def _send_events(self) -> None:
        """Send new texts, until the page goes away."""
        if not self.server.streams.acquire(blocking=False):
            self._answer(503, "text/plain; charset=utf-8", b"too many pages are open\n")
            return
        try:
            self._head(200, "text/event-stream; charset=utf-8")
            seen: dict[str, int] = {}
            self.wfile.write(b"retry: 1000\n\n")
            while not self.server.board.closed:
                sheets = self.server.board.wait(seen, ALIVE_S)
                events = [f"event: {each.subject}\ndata: {each.text}\n\n" for each in sheets]
                self.wfile.write("".join(events or ["event: alive\ndata: {}\n\n"]).encode())
        except OSError:
            pass  # the page was closed
        finally:
            self.server.streams.release()

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self._head(status, kind, len(body))
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def _head(self, status: int, kind: str, length: int | None = None) -> None:
        self.close_connection = True
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the class behind it
        """Write into the log what others write on stderr."""
        log.debug(format, *args)


def _is_ours(host: str) -> bool:
    """Return whether a Host header names this machine's loopback.

    >>> [_is_ours(host) for host in ("127.0.0.1:8700", "[::1]:80", "localhost", "evil.example:80")]
    [True, True, True, False]
    """
    try:
        return urlsplit(f"//{host}").hostname in HOSTS and "@" not in host
    except ValueError:
        return False
