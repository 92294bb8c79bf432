"""Calling out alerts: real commands and a real server, in their thread."""

import argparse
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from random import Random

import pytest

from device_agent.agent.acting.alerts import Turn
from device_agent.agent.acting.effects import (
    MOST_QUEUED,
    TRIES,
    Caller,
    CallFailedError,
    Command,
    Webhook,
)
from device_agent.console.configuration.alert_options import (
    WEBHOOK_VARIABLE,
    add_alert_arguments,
    caller_of,
)
from lasp_edge.errors import UsageError
from tests.brokers import PATIENCE_S, until_true

TEXT = b'{"state": "on"}'


def turn(number=1, **said):
    return Turn("too warm", "", number, {"state": "on"} | said)


def python(code):
    return [sys.executable, "-c", code]


def test_a_command_reads_the_alert_as_json(tmp_path):
    path = tmp_path / "said"
    code = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())"
    Command([*python(code), str(path)], timeout_s=PATIENCE_S)(TEXT)
    assert path.read_bytes() == TEXT + b"\n"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import sys; sys.exit(7)", "the command ended with exit code 7"),
        ("import sys; sys.exit('no siren')", "the command ended with exit code 1: no siren"),
        ("while True: pass", "the command took over 0.5 s"),
    ],
)
def test_a_command_that_fails_says_why(code, why):
    with pytest.raises(CallFailedError, match=why):
        Command(python(code), timeout_s=0.5 if "while" in code else PATIENCE_S)(TEXT)


def test_a_command_that_is_gone_says_so():
    with pytest.raises(CallFailedError, match="cannot run: No such file or directory"):
        Command(["/no/such/siren"], timeout_s=PATIENCE_S)(TEXT)


@pytest.fixture
def server():
    """A server that keeps what is posted; it refuses /refused."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.posted.append((self.path, self.headers["Content-Type"], body))
            self.send_response(500 if self.path == "/refused" else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.posted = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_posted_json(server):
    Webhook(f"http://127.0.0.1:{server.server_port}/warm", PATIENCE_S)(TEXT)
    assert server.posted == [("/warm", "application/json", TEXT)]


def test_a_webhook_that_fails_says_why_and_not_where(server):
    with pytest.raises(CallFailedError, match=r"^the webhook's server answered 500$"):
        Webhook(f"http://127.0.0.1:{server.server_port}/refused", PATIENCE_S)(TEXT)
    with pytest.raises(CallFailedError, match=r"cannot be reached: .*refused") as failed:
        Webhook("http://127.0.0.1:1/secret", PATIENCE_S)(TEXT)
    assert "secret" not in str(failed.value)


def called(caller, *turns):
    """Return what became of turns."""
    assert all(caller.offer(each) for each in turns)
    found = []
    until_true(lambda: found.extend(caller.ended()) or len(found) == len(turns))
    caller.stop()
    return found


def test_turns_are_called_out_in_their_order():
    heard = []
    caller = Caller([heard.append], Random(1))
    assert called(caller, turn(1), turn(2)) == [(turn(1), ""), (turn(2), "")]
    assert [json.loads(text) for text in heard] == [{"state": "on"}] * 2


def test_a_call_is_tried_again_and_then_given_up_with_its_reason():
    tries = {"well": 0, "never": 0}

    def well(_text):
        tries["well"] += 1
        if tries["well"] < 3:
            raise CallFailedError("not yet")

    def never(_text):
        tries["never"] += 1
        raise ZeroDivisionError("our bug")

    caller = Caller([well, never], Random(1), first_wait_s=0.001)
    ((_, trouble),) = called(caller, turn())
    assert tries == {"well": 3, "never": TRIES}
    assert trouble == f"ZeroDivisionError: our bug (tried {TRIES} times, and given up)"


def test_no_more_turns_are_taken_than_there_is_room_for():
    go_on = threading.Event()
    caller = Caller([lambda _text: go_on.wait(PATIENCE_S)], Random(1))
    taken = sum(caller.offer(turn(number)) for number in range(MOST_QUEUED + 50))
    assert taken in {MOST_QUEUED, MOST_QUEUED + 1}  # one of them may be in the thread's hands
    go_on.set()
    caller.stop()


def test_a_turn_that_was_not_called_out_when_the_agent_stops_is_not_said_to_be():
    failing = threading.Event()

    def fails(_text):
        failing.set()
        raise CallFailedError("not now")

    caller = Caller([fails], Random(1), first_wait_s=60)
    caller.offer(turn())
    assert failing.wait(PATIENCE_S)
    caller.stop()
    assert caller.ended() == []


def options(*words):
    parser = argparse.ArgumentParser()
    add_alert_arguments(parser)
    return caller_of(parser.parse_args(words), Random(1))


def test_without_options_nobody_is_called():
    assert options() is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--alert-command", "no-such-siren on"], "there is no program 'no-such-siren'"),
        (["--alert-command", "siren 'on"], "No closing quotation"),
        (["--alert-webhook", "homeassistant.local"], "a URL such as http"),
        (["--alert-timeout", "-1"], "seconds above 0"),
        (["--alert-command", "true", "--alert-timeout", "0"], "seconds above 0"),
    ],
)
def test_options_that_cannot_work_are_refused_at_the_start(words, why):
    with pytest.raises(UsageError, match=why):
        options(*words)


def test_the_webhook_may_stand_in_the_environment(monkeypatch, server):
    monkeypatch.setenv(WEBHOOK_VARIABLE, f"http://127.0.0.1:{server.server_port}/secret")
    called(options(), turn(value=29.5))
    assert json.loads(server.posted[0][2]) == {"state": "on", "value": 29.5}
