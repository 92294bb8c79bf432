"""The page over real sockets: who is answered, what a browser is told, and what ends well."""

import base64
import http.client
import json
import socket
from urllib.parse import urlsplit

import pytest

from device_agent.console.dashboard import server as server_module
from device_agent.console.dashboard.board import Board
from device_agent.console.dashboard.server import PageLogin, PageServer
from lasp_edge.errors import Exit, UsageError
from tests.brokers import PATIENCE_S, until_true


@pytest.fixture(scope="module")
def server():
    made = PageServer(Board(), 0)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def fresh():
    """A server of which nothing was asked yet."""
    made = PageServer(Board(), 0)
    made.start()
    yield made
    made.stop()


def asked(server, path, host="localhost", method="GET", login="", at="127.0.0.1"):
    """Return status, headers and text of what is answered."""
    connection = http.client.HTTPConnection(at, server.server_port, timeout=PATIENCE_S)
    basic = {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"} if login else {}
    connection.request(method, path, headers={"Host": host} | basic)
    answer = connection.getresponse()
    found = answer.status, dict(answer.headers), answer.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/?x=1", "text/html; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        *(
            (f"/{name}.js", "text/javascript")
            for name in ("page", "attention", "devices", "charts", "nodes")
        ),
    ],
)
def test_every_part_of_the_page_is_served_with_a_strict_policy(server, path, kind):
    status, headers, text = asked(server, path)
    assert (status, headers["Content-Type"]) == (200, kind)
    assert len(text.encode()) == int(headers["Content-Length"]) > 200
    policy = dict(each.split(" ", 1) for each in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Python" not in headers["Server"]
    assert not [word for word in ("http://", "https://") if word in text.replace(SVG, "")]


SVG = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize("path", ["/x", "/../server.py", "/page/index.html", "//evil", "/%2e%2e/"])
def test_nothing_else_is_served(server, path):
    assert asked(server, path)[0] == 404


@pytest.mark.parametrize("path", ["/", "/events", "/x"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "",
        "[",
    ],
)
def test_whoever_asks_for_another_host_gets_no_answer(server, path, host):
    status, _, text = asked(server, path, host)
    assert (status, text) == (421, "this page is only for localhost\n")


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1:8700", "[::1]:1", "LOCALHOST"])
def test_this_machine_may_be_asked_through_any_port(server, host):
    assert asked(server, "/", host)[0] == 200


def test_only_loopback_is_listened_on(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


def test_other_methods_are_refused(server):
    assert asked(server, "/", method="POST")[0] == 501


@pytest.fixture
def guarded(monkeypatch):
    """A server that others than this machine reach, with a login."""
    monkeypatch.setattr(server_module, "WRONG_LOGIN_S", 0.01)
    made = PageServer(Board(), 0, "0.0.0.0", PageLogin("ann", "s:cr\u00e9t"))
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize("path", ["/", "/events", "/page.js", "/x"])
@pytest.mark.parametrize("login", ["", "ann:wrong", "bob:s:cr\u00e9t", "ann:", ":", "ann"])
def test_nothing_is_answered_without_the_login(guarded, path, login):
    status, headers, text = asked(guarded, path, login=login)
    assert (status, text) == (401, "user and password are needed\n")
    assert headers["WWW-Authenticate"] == 'Basic realm="lasp-edge", charset="UTF-8"'


@pytest.mark.parametrize("header", ["Basic", "Basic !", "Bearer YW5u", "Basic YW5u=", "\xff"])
def test_an_odd_header_is_no_login(header):
    assert not PageLogin(None, "x").fits(header)


def test_with_the_login_the_page_is_answered_by_any_name_and_address(guarded):
    at = urlsplit(guarded.url)
    assert at.port == guarded.server_port
    login = "ann:s:cr\u00e9t"
    assert asked(guarded, "/", "pi.local:8700", login=login)[0] == 200
    assert asked(guarded, "/", at.netloc, login=login, at=at.hostname)[0] == 200
    assert PageLogin(None, "p").fits(f"Basic {base64.b64encode(b'anybody:p').decode()}")


def test_one_wrong_login_is_tried_at_a_time(guarded):
    with guarded.guessing:
        assert asked(guarded, "/", login="ann:wrong")[0] == 429
        assert asked(guarded, "/", login="ann:s:cr\u00e9t")[0] == 200
    assert asked(guarded, "/", login="ann:wrong")[0] == 401


def test_an_address_that_the_machine_lacks_is_named():
    login = PageLogin(None, "p")
    with pytest.raises(UsageError, match=r"--host 192.0.2.7: .* no such address; --host 0.0.0.0"):
        PageServer(Board(), 0, "192.0.2.7", login)
    with pytest.raises(UsageError, match=r"--host no\.such\.invalid: "):
        PageServer(Board(), 0, "no.such.invalid", login)


class Stream:
    """Reads the events of a server."""

    def __init__(self, server):
        self._socket = socket.create_connection(
            ("127.0.0.1", server.server_port), timeout=PATIENCE_S
        )
        self._socket.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(": ")
            self.headers[name] = value

    def next(self):
        """Return the next event's subject and data."""
        event = {}
        while not {"event", "data"} <= set(event):
            name, _, value = self._file.readline().decode().rstrip("\n").partition(": ")
            assert name or not event or set(event) == {"retry"}
            event[name] = value
        return event["event"], json.loads(event["data"])

    def ends(self):
        return self._file.read() is not None

    def close(self):
        self._file.close()
        self._socket.close()


def test_a_page_hears_what_stands_and_then_what_is_new(fresh):
    fresh.board.write("fleet", {"devices": 1})
    stream = Stream(fresh)
    assert stream.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert stream.headers["Cache-Control"] == "no-store"
    assert stream.next() == ("fleet", {"devices": 1})
    fresh.board.write("fleet", {"devices": 1})
    fresh.board.write("history", {"a": ["a\nb\u2028"]})
    assert stream.next() == ("history", {"a": ["a\nb\u2028"]})
    fresh.board.write("fleet", {"devices": 1, "away": 2})
    assert stream.next() == ("fleet", {"away": 2})
    stream.close()


def test_a_page_hears_that_its_server_lives(fresh, monkeypatch):
    monkeypatch.setattr(server_module, "ALIVE_S", 0.01)
    stream = Stream(fresh)
    assert stream.next() == ("alive", {})
    stream.close()


def test_a_stream_ends_with_its_server(fresh):
    stream = Stream(fresh)
    fresh.stop()
    assert stream.ends()
    stream.close()


def test_streams_are_bounded_and_one_that_was_closed_makes_room(monkeypatch):
    monkeypatch.setattr(server_module, "MOST_STREAMS", 2)
    monkeypatch.setattr(server_module, "ALIVE_S", 0.01)
    server = PageServer(Board(), 0)
    server.start()
    streams = [Stream(server) for _ in range(3)]
    assert [each.status for each in streams] == [200, 200, 503]
    for each in streams:
        each.close()
    until_true(lambda: Stream(server).status == 200)
    server.stop()


def test_a_port_that_is_taken_is_named_with_another_to_type(server):
    taken = server.server_port
    with pytest.raises(UsageError, match=f"--port {taken}: Address already in use; .* --port"):
        PageServer(Board(), taken)
    assert UsageError.exit_code == Exit.USAGE


def test_a_server_that_never_served_can_be_stopped():
    PageServer(Board(), 0).stop()
