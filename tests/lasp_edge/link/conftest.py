"""Brokers and links for tests of the link."""

import contextlib
import random
import shutil
import socket
import subprocess
import threading

import pytest

from lasp_edge.link import BrokerUrl, Link
from tests.brokers import private_broker
from tests.support_missing import lacks


@pytest.fixture
def mosquitto(tmp_path):
    """A broker that speaks MQTT 5, keeps sessions and sends again what was not acknowledged."""
    with private_broker(tmp_path / "broker", "mosquitto") as running:
        yield running


@pytest.fixture
def connect():
    """Return a function that starts links; they are stopped at the end."""
    links = []

    def start(url, client_id="a", subscriptions=(), **options):
        options.setdefault("jitter", random.Random(1))
        link = Link(
            BrokerUrl.parse(url), client_id=client_id, subscriptions=subscriptions, **options
        )
        links.append(link)
        link.start()
        return link

    yield start
    for link in links:
        link.stop(flush_s=0.0)


@pytest.fixture
def scripted():
    """Return a function that starts a broker which gives these answers, one a packet.

    Each connection gets them: on a busy machine the first may end before they come.
    """
    sockets = []

    def start(*answers, tls=None):
        def serve(peer):
            with contextlib.suppress(OSError):
                if tls is not None:
                    peer = tls.wrap_socket(peer, server_side=True)
                sockets.append(peer)
                for answer in answers:
                    peer.recv(4096)
                    peer.sendall(answer)
                peer.recv(4096)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    serve(server.accept()[0])

        server = socket.create_server(("127.0.0.1", 0))
        sockets.append(server)
        threading.Thread(target=accept, daemon=True).start()
        return f"mqtt://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for each in sockets:
        each.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Return the files of a certificate for localhost that signs itself, and of its key."""
    if not shutil.which("openssl"):
        lacks("openssl is not installed")
    directory = tmp_path_factory.mktemp("certificate")
    key, signed = directory / "key.pem", directory / "certificate.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*request, *names, "-keyout", key, "-out", signed], check=True, capture_output=True
    )
    return signed, key
