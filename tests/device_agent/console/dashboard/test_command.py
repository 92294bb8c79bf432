"""`lasp-edge dashboard`: what it says where something lacks."""

import argparse
import http.client

import pytest

from device_agent.console.dashboard import command
from lasp_edge.errors import BrokerUnreachable, Exit, NotFound, UsageError
from simulations.processes.broker import PrivateBroker, free_port
from tests.brokers import PATIENCE_S, broker_program, mosquitto


def arguments(url, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(["--fleet", "greenhouse", "--broker", url, "--port", "0", *words])


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["--port", "70000"], UsageError, "--port: a number from 0 to 65535, not 70000"),
        (
            ["--host", "0.0.0.0"],
            UsageError,
            r"--host 0.0.0.0 .* needs a password; type: \(umask 077; .*\), and add --page-login p",
        ),
        (["--host", "pi.local"], UsageError, "so it needs a password"),
        (["--page-login", "/no/file"], UsageError, "cannot read /no/file: No such file"),
        (["--lake", "/no/lake"], NotFound, "no lake with a table 'windows' in /no/lake"),
        ([], BrokerUnreachable, "Connection refused; is the broker started there"),
    ],
)
def test_what_lacks_is_said_before_a_page_is_served(words, error, said, monkeypatch, capsys):
    monkeypatch.setattr("device_agent.console.command.session.CONNECT_S", 0.3)
    with pytest.raises(error, match=said):
        command.run(arguments(f"mqtt://127.0.0.1:{free_port()}", *words))
    assert capsys.readouterr().out == ""


@pytest.mark.broker
def test_a_wrong_password_is_said_with_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setattr("device_agent.console.command.session.CONNECT_S", 1)
    (tmp_path / "login").write_text("someone\nwrong\n")
    (tmp_path / "login").chmod(0o600)
    (tmp_path / "passwords").write_text("")
    lines = ("allow_anonymous false", f"password_file {tmp_path / 'passwords'}")
    with (
        mosquitto(tmp_path, *lines) as broker,
        pytest.raises(BrokerUnreachable, match="password") as error,
    ):
        command.run(arguments(broker.url, "--login", str(tmp_path / "login")))
    assert error.value.exit_code == Exit.ENVIRONMENT


@pytest.mark.broker
def test_it_says_where_the_page_is_and_goes_on_until_it_is_stopped(tmp_path, capsys, monkeypatch):
    asked = []

    def turned(shown):
        turn(shown)
        connection = http.client.HTTPConnection(
            "127.0.0.1", shown.server.server_port, timeout=PATIENCE_S
        )
        connection.request("GET", "/")
        asked.append(connection.getresponse().status)
        connection.close()
        if len(asked) > 1:
            raise KeyboardInterrupt

    turn = command.Dashboard.turn
    monkeypatch.setattr(command.Dashboard, "turn", turned)
    with (
        PrivateBroker(tmp_path / "broker", broker_program()) as broker,
        pytest.raises(KeyboardInterrupt),
    ):
        command.run(arguments(broker.url))
    assert capsys.readouterr().out.startswith("The page: http://127.0.0.1:")
    assert asked == [200, 200]
