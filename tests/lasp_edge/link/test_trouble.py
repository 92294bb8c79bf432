"""What a broker refuses is said in one line, once: the reason, and what to type."""

import base64
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import ssl
import subprocess
from pathlib import Path

import pytest

from lasp_edge.link import BrokerUrl, Disconnected, Limits, TlsFiles
from lasp_edge.link.trouble import NAMES, Closures, ended_by_broker, unreachable
from tests.brokers import (
    free_port,
    messages,
    mosquitto,
    until,
    until_connected,
    until_messages,
    until_true,
)
from tests.certificates import Authority
from tests.device_agent.support_stage import lasp_edge
from tests.lasp_edge.link.support_link import publish_when_possible
from tests.support_missing import lacks

pytestmark = [
    pytest.mark.broker,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # paho's socket
]
QUICK = Limits(first_wait_s=0.02, longest_wait_s=0.05, handshake_timeout_s=2.0)
DYNSEC = Path("/usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so")


def says(link, line):
    """Wait until this is what the link says of its trouble."""
    until_true(lambda: link.poll(0.01) or line in (link.trouble or ""))


def is_said_once(caplog, line):
    said = [record for record in caplog.records if line in record.getMessage()]
    assert [(record.levelno, "\n" in record.getMessage()) for record in said] == [
        (logging.WARNING, False)
    ]


@pytest.fixture
def passwords(tmp_path):
    """The configuration of a broker that knows `ann`, password s:cret."""
    if not shutil.which("mosquitto_passwd"):
        lacks("mosquitto_passwd is not installed")
    file = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", file, "ann", "s:cret"], check=True)
    file.chmod(0o600)
    return ("allow_anonymous false", f"password_file {file}")


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_wrong_password_is_said(tmp_path, passwords, connect, caplog, protocol):
    with mosquitto(tmp_path / "broker", *passwords) as broker:
        address = f"mqtt://ann:wrong@127.0.0.1:{broker.port}?protocol={protocol}"
        link = connect(address, limits=QUICK)
        says(link, "is the password of user 'ann' right? (--login FILE)")
        tries = link.counts.attempts
        until_true(lambda: link.counts.attempts >= tries + 3)
        is_said_once(caplog, "the broker refuses us")
        assert "wrong" not in caplog.text


def test_a_client_without_a_name_is_told_what_is_asked_for(tmp_path, passwords, connect):
    with mosquitto(tmp_path / "broker", *passwords) as broker:
        link = connect(broker.url, limits=QUICK)
        says(link, "refuses us: Not authorized; it asks for a user and a password: --login FILE")


def test_an_unknown_host_is_said(connect, caplog):
    link = connect("mqtt://no-such-host.invalid", limits=QUICK)
    says(link, "is the name right? (getent hosts no-such-host.invalid)")
    until_true(lambda: link.counts.attempts > 3)
    is_said_once(caplog, "cannot reach mqtt://no-such-host.invalid:1883")


def test_a_port_where_nobody_listens_is_said(connect):
    link = connect(f"mqtt://127.0.0.1:{free_port()}", limits=QUICK)
    says(link, "Connection refused; is the broker started there? (systemctl status mosquitto)")


def test_a_refused_message_is_said_and_holds_nothing_up(tmp_path, passwords, connect, caplog):
    rules = tmp_path / "rules"
    rules.write_text("user ann\ntopic readwrite open/#\n")
    rules.chmod(0o600)
    with mosquitto(tmp_path / "broker", *passwords, f"acl_file {rules}") as broker:
        url = f"mqtt://ann:s%3Acret@127.0.0.1:{broker.port}"
        link = connect(url, subscriptions=["open/#"], limits=QUICK)
        until_connected(link)
        for _ in range(3):
            publish_when_possible(link, "closed/1", b"x")
            publish_when_possible(link, "open/1", b"y")
        assert {message.topic for message in until_messages(link, 3)} == {"open/1"}
        says(link, "the broker refuses messages on closed/1: Not authorized; let user 'ann' use")
        is_said_once(caplog, "`lasp-edge broker config` writes the rules")
        assert "there 'ann' has to be the --device, or the --name of a gateway" in caplog.text
        assert link.counts.dropped == {"refused by the broker: Not authorized": 3}


def test_a_refusal_that_is_lifted_is_no_trouble_any_more(tmp_path, passwords, connect):
    rules = tmp_path / "rules"
    rules.write_text("user ann\ntopic read open/#\n")
    rules.chmod(0o600)
    with mosquitto(tmp_path / "broker", *passwords, f"acl_file {rules}") as broker:
        link = connect(f"mqtt://ann:s%3Acret@127.0.0.1:{broker.port}", limits=QUICK)
        until_connected(link)
        publish_when_possible(link, "open/1", b"x")
        says(link, "refuses messages on open/1")
        rules.write_text("user ann\ntopic readwrite open/#\n")
        os.kill(broker.pid, signal.SIGHUP)
        until_true(lambda: link.publish("open/1", b"x") and link.trouble is None)


def test_a_refused_subscription_is_said(tmp_path, connect, caplog):
    if not DYNSEC.exists():
        lacks(f"{DYNSEC} is not there; it comes with mosquitto")
    salt = b"0123456789ab"
    hashed = hashlib.pbkdf2_hmac("sha512", b"s", salt, 101)
    ann = {
        "username": "ann",
        "password": base64.b64encode(hashed).decode(),
        "salt": base64.b64encode(salt).decode(),
        "iterations": 101,
    }
    may = {"publishClientSend": True, "publishClientReceive": True, "subscribe": False}
    file = tmp_path / "rights.json"
    file.write_text(json.dumps({"defaultACLAccess": may, "clients": [ann]}))
    lines = ("allow_anonymous false", f"plugin {DYNSEC}", f"plugin_opt_config_file {file}")
    with mosquitto(tmp_path / "broker", *lines) as broker:
        link = connect(f"mqtt://ann:s@127.0.0.1:{broker.port}", "a", ["a/#"], limits=QUICK)
        assert until_connected(link).refused_subscriptions == ("a/#",)
        line = "the broker refuses the subscription a/#: Not authorized; let user 'ann' use"
        says(link, line)
        is_said_once(caplog, line)


@pytest.mark.parametrize(
    ("limit", "protocol"),
    [("message_size_limit", "5"), ("max_packet_size", "3.1.1")],
)
def test_a_message_that_the_broker_closes_the_connection_for_is_given_up_and_said(
    tmp_path, connect, caplog, limit, protocol
):
    with mosquitto(tmp_path / "broker", "allow_anonymous true", f"{limit} 1000") as broker:
        url = f"{broker.url}?protocol={protocol}"
        link = connect(url, subscriptions=["small"], limits=QUICK)
        until_connected(link)
        came, line = [], "the broker refuses messages on large: Packet too large; let it take"
        while not came or line not in (link.trouble or ""):
            if link.publish("large", b"x" * 1_001):
                publish_when_possible(link, "small", b"y")
            came += messages(link.poll(0.05))
        assert link.counts.connections == 4
        is_said_once(caplog, line)


def test_two_programs_with_one_client_id_are_told_of_each_other(tmp_path, connect, caplog):
    with mosquitto(tmp_path / "broker", "allow_anonymous true") as broker:
        older = connect(broker.url, "twin", limits=Limits(first_wait_s=30.0))
        until_connected(older)
        until_connected(connect(broker.url, "twin"))
        until(older, lambda events: any(isinstance(e, Disconnected) for e in events))
        says(older, "Session taken over; another program uses the client id twin: stop one")


def test_the_options_that_tell_two_programs_apart_are_options_of_their_commands():
    found = dict(re.findall(r"(--[a-z-]+) \(of an? ([a-z]+)", NAMES))
    assert sorted(found.values()) == ["agent", "gateway", "lander"]
    for option, command in found.items():
        assert f" {option} " in lasp_edge(command, "--help").stdout


def test_two_programs_that_throw_each_other_off_again_and_again_are_told(tmp_path, connect, caplog):
    with mosquitto(tmp_path / "broker", "allow_anonymous true") as broker:
        twins = [connect(broker.url, "twin", ["t/#"], limits=QUICK) for _ in range(2)]
        line = "maybe another program uses the client id twin: give one of the two another --name"
        told = set()

        def both_are_told():
            for number, twin in enumerate(twins):
                twin.poll(0.01)
                told.update([number] if line in (twin.trouble or "") else [])
            return len(told) == len(twins)

        until_true(both_are_told)
        until_true(lambda: line in caplog.text)
        twins[0].stop()
        until_true(lambda: not twins[1].poll(0.01) and twins[1].connected and not twins[1].trouble)


KITCHEN = BrokerUrl.parse("mqtt://kitchen@broker.example")
SHOWN = BrokerUrl.parse("mqtts://broker.example")._replace(files=TlsFiles("ca", "pem", "key"))


@pytest.mark.parametrize(
    ("broker", "who", "apart"),
    [
        (KITCHEN, "is connected as user 'kitchen', or uses the client id x", "a --login of its"),
        (SHOWN, "is connected as the user of our certificate, or uses", "a --certificate of its"),
    ],
)
def test_a_broker_may_allow_a_user_one_connection(broker, who, apart):
    closures = Closures(broker, "x")
    for _ in range(3):
        line = closures.explained("the broker closed the connection", was_up=True)
    for text in (line, ended_by_broker("Session taken over", broker, "x")):
        assert f"another program {who}" in text
        assert f" {apart} own, or another {NAMES}" in text


def test_a_broker_that_is_frozen_while_nothing_is_sent_is_noticed(tmp_path, connect):
    with mosquitto(tmp_path / "broker", "allow_anonymous true") as broker:
        limits = Limits(keep_alive_s=1, first_wait_s=0.05, handshake_timeout_s=0.3)
        link = connect(broker.url, subscriptions=["t"], limits=limits)
        until_connected(link)
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            until(link, lambda events: any(isinstance(e, Disconnected) for e in events))
            says(link, "the broker does not answer our CONNECT")
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        until_connected(link)
        publish_when_possible(link, "t", b"x")
        assert until_messages(link, 1)[0].payload == b"x"


def test_what_overflows_the_brokers_queue_is_lost_and_the_rest_comes(tmp_path, connect):
    lines = ("allow_anonymous true", "max_queued_messages 10", "max_inflight_messages 5")
    with mosquitto(tmp_path / "broker", *lines) as broker:
        options = {"keep_session_s": 600, "subscriptions": ["t"]}
        away = connect(broker.url, "away", **options)
        until_connected(away)
        away.stop()
        sender = connect(broker.url, "sender")
        until_connected(sender)
        for number in range(100):
            publish_when_possible(sender, "t", b"%d" % number)
        until_true(lambda: sender.in_flight == 0)
        back = connect(broker.url, "away", **options)
        came = until(back, lambda events: len(messages(events)) >= 10)
        publish_when_possible(sender, "t", b"last")
        came += until(back, lambda events: b"last" in [m.payload for m in messages(events)])
        numbers = [int(message.payload) for message in messages(came)[:-1]]
        assert numbers == list(range(len(numbers)))
        assert 10 <= len(numbers) < 20


# TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def tls_broker(tmp_path, authority):
    """A broker that takes only clients with a certificate of the authority."""
    pair = authority.signs("broker", host="localhost")
    listener = (
        *(f"cafile {authority.file}", f"certfile {pair.certificate}", f"keyfile {pair.key}"),
        *("require_certificate true", "use_identity_as_username true"),
    )
    with mosquitto(tmp_path / "broker", "allow_anonymous false", listener=listener) as broker:
        yield broker


@pytest.fixture
def connect_by(connect, monkeypatch):
    """Return a function that starts a link with files for TLS."""

    def start(port, files, host="localhost"):
        address = BrokerUrl.parse(f"mqtts://{host}:{port}")._replace(files=files)
        monkeypatch.setattr(BrokerUrl, "parse", lambda _text: address)
        return connect("", subscriptions=["t"], limits=QUICK)

    return start


def test_a_device_with_a_certificate_is_let_in(tls_broker, authority, connect_by):
    kitchen = authority.signs("kitchen")
    files = TlsFiles(str(authority.file), str(kitchen.certificate), str(kitchen.key))
    link = connect_by(tls_broker.port, files)
    until_connected(link)
    publish_when_possible(link, "t", b"x")
    assert until_messages(link, 1)[0].payload == b"x"


def test_a_device_without_a_certificate_is_told_what_is_asked_for(
    tls_broker, authority, connect_by, caplog
):
    link = connect_by(tls_broker.port, TlsFiles(str(authority.file)))
    says(link, "--certificate FILE --key FILE")
    until_true(lambda: link.counts.attempts > 4)
    is_said_once(caplog, "the broker asks for a certificate")


def test_a_certificate_of_another_authority_is_refused(tls_broker, authority, connect_by, tmp_path):
    stranger = Authority(tmp_path / "other", "other-ca").signs("kitchen")
    files = TlsFiles(str(authority.file), str(stranger.certificate), str(stranger.key))
    link = connect_by(tls_broker.port, files)
    says(link, "the broker does not accept our certificate")


def test_a_broker_of_another_authority_is_not_trusted(tls_broker, connect_by, tmp_path):
    other = Authority(tmp_path / "other", "other-ca")
    link = connect_by(tls_broker.port, TlsFiles(str(other.file)))
    says(link, "is not trusted (CERTIFICATE_VERIFY_FAILED: ")
    says(link, "name the authority that signed it: --ca-file FILE")


def test_a_name_that_is_not_in_the_certificate_is_said(tls_broker, authority, connect_by):
    link = connect_by(tls_broker.port, TlsFiles(str(authority.file)), host="127.0.0.1")
    says(link, "use a name in --broker that its certificate has")


def test_a_key_of_another_certificate_is_said(tls_broker, authority, connect_by):
    kitchen, attic = authority.signs("kitchen"), authority.signs("attic")
    files = TlsFiles(str(authority.file), str(kitchen.certificate), str(attic.key))
    link = connect_by(tls_broker.port, files)
    says(link, f"the files for TLS cannot be used: --key {attic.key}: it is not the key of")


def test_tls_where_none_is_spoken_is_said(tmp_path, connect):
    with mosquitto(tmp_path / "broker", "allow_anonymous true") as broker:
        link = connect(f"mqtts://127.0.0.1:{broker.port}", limits=QUICK)
        says(link, f"does the broker speak TLS on port {broker.port}?")


def test_no_tls_where_it_is_spoken_is_said(tls_broker, connect):
    link = connect(f"mqtt://127.0.0.1:{tls_broker.port}", limits=QUICK)
    says(link, "before it answered; if it wants TLS, use mqtts://")


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        (
            "certificate has expired",
            "is this machine's clock right? (date) If it is, the broker needs a new certificate",
        ),
        ("certificate is not yet valid", "is this machine's clock right? (date)"),
    ],
)
def test_a_certificate_out_of_its_time_may_be_the_clocks_fault_or_the_brokers(why, advice):
    error = ssl.SSLCertVerificationError(1, why)
    error.verify_message = why
    line = unreachable(error, BrokerUrl.parse("mqtts://broker.example"))
    assert line.endswith(f"CERTIFICATE_VERIFY_FAILED: {why}); {advice}")
