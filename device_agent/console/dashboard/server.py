"""Serves the page, and sends it new texts as server-sent events.

Without a login it listens on a loopback address alone. A page of a stranger could still have its
own name resolve to that address (DNS rebinding) and read along; so whoever asks for another host
than this one gets no answer. With a login each request must carry it, and a stranger's page has
none to send. A wrong one costs a second, and only one is tried at a time. The headers let the
browser run, load and connect to nothing but this server.

Source: WHATWG, "HTML", section 9.2, server-sent events; W3C, "Content Security Policy Level 3"; J.
Reschke, "The 'Basic' HTTP Authentication Scheme", RFC 7617, 2015.
"""

import binascii
import contextlib
import errno
import hmac
import logging
import os
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socketserver import TCPServer
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from device_agent.console.dashboard.board import Board, Plain
from lasp_edge.errors import UsageError

log = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
_ANY: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, never a default
FAR, FAR_6 = "192.0.2.1", "2001:db8::1"
"""Addresses of documentation: whoever has a way to the outside has one to them."""
HOSTS: Final = frozenset({"localhost", LOOPBACK, "::1"})
"""The hosts that may be asked for; through an SSH tunnel the port may be any."""
MOST_STREAMS = 32
"""Pages that are open at one time, at most: each has a thread."""
ALIVE_S = 5.0
"""Seconds after which a page is sent a sign of life, though nothing is new."""
PATIENCE_S = 20.0
"""Seconds that a browser takes to ask, or to take what it is sent, at most."""
WRONG_LOGIN_S = 1.0
"""Seconds that a wrong login takes: a million guesses take eleven days."""

_FOLDER: Final = Path(__file__).parent / "page"
_SCRIPTS: Final = ("page.js", "attention.js", "devices.js", "nodes.js", "charts.js")
_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    **{f"/{name}": (name, "text/javascript") for name in _SCRIPTS},
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


class PageLogin(NamedTuple):
    """The login of a page.

    Attributes:
        user: None where any name will do.
        password: of everybody who may look.
    """

    user: str | None
    password: str

    def fits(self, header: str) -> bool:
        """Return whether an `Authorization` header has it.

        >>> PageLogin("me", "secret").fits("Basic bWU6c2VjcmV0"), PageLogin(None, "x").fits("Basic")
        (True, False)
        """
        scheme, _, coded = header.partition(" ")
        try:
            user, _, password = binascii.a2b_base64(coded, strict_mode=True).partition(b":")
        except ValueError:
            return False
        wanted = user if self.user is None else self.user.encode()
        # Both are compared: how long it takes says nothing of either.
        is_user = hmac.compare_digest(user, wanted)
        is_password = hmac.compare_digest(password, self.password.encode())
        return scheme.lower() == "basic" and is_user and is_password


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address or a name.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "pi.local")]
    [True, True, True, False, False]
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class PageServer(ThreadingHTTPServer):
    """Serves the page of one board.

    Args:
        board: the texts that are shown.
        port: where to listen; 0 for any port that is free.
        host: the address to listen on.
        login: what a browser must send; needed where others than this machine reach the address.

    Raises:
        UsageError: the port is taken, or the machine has no such address.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(
        self, board: Board, port: int, host: str = LOOPBACK, login: PageLogin | None = None
    ) -> None:
        assert login is not None or is_loopback(host)
        self.board, self.host, self.login = board, host, login
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        self.guessing = threading.Lock()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except socket.gaierror as error:
            raise UsageError(f"--host {host}: {error.strerror}") from None
        except OSError as error:
            raise UsageError(_not_bound(host, port, error)) from None
        self._thread = threading.Thread(target=self.serve_forever, name="page", daemon=True)

    def server_bind(self) -> None:
        """Bind the address, and look no name up: that may take long where there is no resolver."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    @property
    def url(self) -> str:
        """Where the page is, for a browser."""
        host = own_address(self.host) if self.host in _ANY else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"

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


def own_address(any_host: str) -> str:
    """Return the address at which others reach this machine: that of its way to the outside."""
    far, family = (FAR_6, socket.AF_INET6) if ":" in any_host else (FAR, socket.AF_INET)
    with socket.socket(family, socket.SOCK_DGRAM) as way:
        try:
            way.connect((far, 9))  # it sends nothing
        except OSError:
            return socket.gethostname()
        return str(way.getsockname()[0])


def _not_bound(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host}: this machine has no such address; --host 0.0.0.0 means all it has"
    other = port + 1 if 0 < port < (1 << 16) - 1 else 0
    why = os.strerror(error.errno or 0)
    return f"--port {port}: {why}; choose another one: --port {other}"


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "lasp-edge", ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        """Answer a GET."""
        if self.server.login is not None:
            if not self._is_let_in(self.server.login):
                return
        elif not _is_ours(self.headers.get("Host", "")):
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

    def _is_let_in(self, login: PageLogin) -> bool:
        """Return whether a request has the login; without it, ask for it."""
        header = self.headers.get("Authorization", "")
        if header and login.fits(header):
            return True
        if header and not self.server.guessing.acquire(blocking=False):
            self._answer(429, "text/plain; charset=utf-8", b"one after the other\n")
            return False
        if header:
            log.warning("the page: a wrong user or password from %s", self.client_address[0])
            threading.Event().wait(WRONG_LOGIN_S)
            self.server.guessing.release()
        self._answer(401, "text/plain; charset=utf-8", b"user and password are needed\n")
        return False

    def _send_events(self) -> None:
        """Send new texts, until the page goes away."""
        if not self.server.streams.acquire(blocking=False):
            self._answer(503, "text/plain; charset=utf-8", b"too many pages are open\n")
            return
        try:
            self._head(200, "text/event-stream; charset=utf-8")
            seen: dict[str, Plain] = {}
            self.wfile.write(b"retry: 1000\n\n")
            while not self.server.board.closed:
                patches = self.server.board.wait(seen, ALIVE_S)
                events = [f"event: {subject}\ndata: {text}\n\n" for subject, text in patches]
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
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="lasp-edge", charset="UTF-8"')
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
