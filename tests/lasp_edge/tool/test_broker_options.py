"""The options with which every command reaches the broker: no secret stands on a command line."""

import argparse
import logging

import pytest

from cloud_tier.command import cloud, lander
from device_agent.command import admit, agent, members, retire
from lasp_edge.errors import UsageError
from lasp_edge.link import TlsFiles
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, words_for_child


def parsed(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_broker_arguments(parser)
    return parser.parse_args([*map(str, words)])


def broker(*words, **environment):
    return broker_of(parsed(*words), environment)


def secret(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_every_command_that_speaks_to_a_broker_has_the_same_options():
    for command in (agent, members, retire, admit, lander, cloud):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        options = {option for action in parser._actions for option in action.option_strings}
        assert {"--broker", "--login", "--ca-file", "--certificate", "--key"} <= options


def test_a_login_file_has_a_user_and_a_password(tmp_path, caplog):
    login = secret(tmp_path / "login", "ann\ns:c#ret\n")
    found = broker("--broker", "mqtt://h", "--login", login)
    assert (found.user, found.password) == ("ann", "s:c#ret")
    login = secret(tmp_path / "password", "s:c#ret\n")
    found = broker("--broker", "mqtt://bob@h", "--login", login)
    assert (found.user, found.password) == ("bob", "s:c#ret")
    assert not caplog.records


@pytest.mark.parametrize("text", ["", "\n", "a\nb\nc\n", "a\n\n"])
def test_a_login_file_of_another_form_is_refused(tmp_path, text):
    login = secret(tmp_path / "login", text)
    with pytest.raises(UsageError, match="two lines are needed, a user and a password"):
        broker("--broker", "mqtt://h", "--login", login)


def test_the_environment_may_hold_the_login():
    secrets = {"LASP_EDGE_USER": "ann", "LASP_EDGE_PASSWORD": "s"}
    found = broker("--broker", "mqtt://h", **secrets)
    assert (found.user, found.password) == ("ann", "s")


def test_a_file_overrides_the_address_and_the_address_the_environment(tmp_path):
    login = secret(tmp_path / "login", "of the file\n")
    secrets = {"LASP_EDGE_USER": "x", "LASP_EDGE_PASSWORD": "y"}
    assert broker("--broker", "mqtt://ann:z@h", **secrets)[3:5] == ("ann", "z")
    found = broker("--broker", "mqtt://ann:z@h", "--login", login, **secrets)
    assert found[3:5] == ("ann", "of the file")


def test_a_password_on_the_command_line_is_warned_of(caplog):
    broker("--broker", "mqtt://ann:s3cret@h")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "use --login FILE" in record.getMessage()
    assert "s3cret" not in record.getMessage()


def test_a_secret_that_others_can_read_is_warned_of(tmp_path, caplog):
    login = secret(tmp_path / "login", "ann\ns\n")
    login.chmod(0o644)
    broker("--broker", "mqtt://h", "--login", login)
    assert [record.getMessage() for record in caplog.records] == [
        f"other users of this machine can read {login}; type: chmod 600 {login}"
    ]


def test_files_for_tls_are_those_that_are_given(tmp_path):
    files = [secret(tmp_path / name, "x") for name in ("ca", "certificate", "key")]
    words = ("--ca-file", files[0], "--certificate", files[1], "--key", files[2])
    assert broker("--broker", "mqtts://h", *words).files == TlsFiles(*map(str, files))


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("--broker", "mqtt://h", "--login", "/no/such"), "cannot read /no/such: No such file"),
        (("--broker", "mqtts://h", "--ca-file", "/no/such"), "cannot read /no/such"),
        (("--broker", "mqtts://h", "--key", "/dev/null"), "--key belongs to a --certificate"),
        (("--broker", "mqtt://h", "--ca-file", "/dev/null"), "use mqtts://"),
        (
            (
                "--broker",
                "http://h",
            ),
            "a broker address is mqtt://",
        ),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(words, refusal):
    with pytest.raises(UsageError, match=refusal) as refused:
        broker(*words)
    assert "\n" not in str(refused.value)


def test_a_child_process_gets_the_password_in_its_environment_alone(tmp_path):
    login = secret(tmp_path / "login", "ann\ns3cret\n")
    authority = secret(tmp_path / "ca", "x")
    arguments = parsed("--broker", "mqtts://h", "--login", login, "--ca-file", authority)
    words, secrets = words_for_child(arguments, broker_of(arguments, {}))
    assert words == ["--broker", "mqtts://h:8883", "--ca-file", str(authority)]
    again = broker_of(parsed(*words), secrets)
    assert again == broker_of(arguments, {})
