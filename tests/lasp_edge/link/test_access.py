"""Users, their rights, and TLS."""

import shutil
import subprocess

import pytest

from tests.brokers import (
    ConfiguredMosquitto,
    until_connected,
    until_messages,
    until_true,
)
from tests.lasp_edge.link.support_link import publish_when_possible
from tests.support_missing import lacks

pytestmark = pytest.mark.broker


def test_a_users_password_and_rights(tmp_path, connect):
    if not shutil.which("mosquitto_passwd"):
        lacks("mosquitto_passwd is not installed")
    passwords, rights = tmp_path / "passwords", tmp_path / "rights"
    subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "ann", "s:cret"], check=True)
    rights.write_text("user ann\ntopic readwrite open/#\n")
    for path in (passwords, rights):
        path.chmod(0o600)
    lines = ("allow_anonymous false", f"password_file {passwords}", f"acl_file {rights}")

    class Guarded(ConfiguredMosquitto):
        def _wait_until_it_accepts(self, process, line):  # the probe has no password
            until_true(lambda: "running" in (tmp_path / "broker/broker.log").read_text())

    with Guarded(tmp_path / "broker", *lines) as broker:
        address = broker.url.removeprefix("mqtt://")
        stranger = connect(f"mqtt://ann:wrong@{address}", "stranger")
        until_true(lambda: "refuses us: Not authorized" in (stranger.trouble or ""))
        assert stranger.protocol == "5"
        link = connect(f"mqtt://ann:s%3Acret@{address}", "ann")
        until_connected(link)
        publish_when_possible(link, "closed/1", b"x")
        until_true(lambda: link.counts.dropped == {"refused by the broker: Not authorized": 1})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho's socket
def test_tls_with_a_private_authority(tmp_path, connect, certificate, monkeypatch):
    signed, key = certificate

    class Encrypted(ConfiguredMosquitto):
        def _wait_until_it_accepts(self, process, line):  # the probe speaks no TLS
            until_true(lambda: "running" in (tmp_path / "broker/broker.log").read_text())

    listener = (f"certfile {signed}", f"keyfile {key}")
    with Encrypted(tmp_path / "broker", listener=listener) as broker:
        url = f"mqtts://localhost:{broker.port}"
        distrustful = connect(url, "distrustful")
        until_true(lambda: "CERTIFICATE_VERIFY_FAILED" in (distrustful.trouble or ""))
        monkeypatch.setenv("SSL_CERT_FILE", str(signed))
        link = connect(url, "b", ["t"])
        until_connected(link)
        for _ in range(3):
            publish_when_possible(link, "t", b"x" * 100_000)
        assert [len(message.payload) for message in until_messages(link, 3)] == [100_000] * 3
