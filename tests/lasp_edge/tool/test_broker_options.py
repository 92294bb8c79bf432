"""The options with which every command reaches the broker: no secret stands on a command line."""

import argparse
import logging
import re
import subprocess

import pytest

from cloud_tier.command import cloud, lander
from device_agent.console.command import admit, agent, members, retire
from lasp_edge.errors import UsageError
from lasp_edge.link import TlsFiles
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, words_for_child
from tests.certificates import Authority


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


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def test_files_for_tls_are_those_that_are_given(authority):
    kitchen = authority.signs("kitchen")
    words = ("--ca-file", authority.file, "--certificate", kitchen.certificate)
    files = broker("--broker", "mqtts://h", *words, "--key", kitchen.key).files
    assert files == TlsFiles(*map(str, (authority.file, kitchen.certificate, kitchen.key)))


def test_a_broken_file_for_tls_is_refused_by_its_name(authority, tmp_path):
    kitchen, attic = authority.signs("kitchen"), authority.signs("attic")
    locked, broken = tmp_path / "locked.key", secret(tmp_path / "broken", "no PEM\n")
    lock = ["openssl", "pkey", "-in", kitchen.key, "-aes256", "-passout", "pass:x", "-out", locked]
    subprocess.run(lock, check=True, capture_output=True)
    locked.chmod(0o600)
    pair = (kitchen.certificate, kitchen.key)
    refusals = {
        (broken, *pair): f"--ca-file {broken}: no certificate in PEM stands in it",
        (tmp_path, *pair): f"cannot read {tmp_path}: Is a directory",
        (authority.file, broken, kitchen.key): f"--certificate {broken}: no certificate in PEM",
        (authority.file, kitchen.key, kitchen.key): f"--certificate {kitchen.key}: no certificate",
        (authority.file, kitchen.certificate, broken): f"--key {broken}: no private key in PEM",
        (authority.file, kitchen.certificate, attic.key): f"--key {attic.key}: it is not the key",
        (authority.file, kitchen.certificate, locked): f"openssl pkey -in {locked} -out NEW",
    }
    for files, refusal in refusals.items():
        words = zip(("--ca-file", "--certificate", "--key"), files, strict=True)
        with pytest.raises(UsageError, match=re.escape(refusal)):
            broker("--broker", "mqtts://h", *(word for pair in words for word in pair))
    with pytest.raises(UsageError, match="name the file that holds it: --key FILE"):
        broker("--broker", "mqtts://h", "--certificate", kitchen.certificate)


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


def test_a_child_process_gets_the_password_in_its_environment_alone(authority, tmp_path):
    login = secret(tmp_path / "login", "ann\ns3cret\n")
    words = ("--login", login, "--ca-file", authority.file)
    arguments = parsed("--broker", "mqtts://h", *words)
    words, secrets = words_for_child(arguments, broker_of(arguments, {}))
    assert words == ["--broker", "mqtts://h:8883", "--ca-file", str(authority.file)]
    again = broker_of(parsed(*words), secrets)
    assert again == broker_of(arguments, {})
