"""What the README shows of processes: devices, brokers, the cloud and a lake come out as shown."""

import importlib.util
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lasp_edge.release import RELEASE
from simulations.processes.broker import PrivateBroker, free_port
from tests.brokers import PATIENCE_S, ConfiguredMosquitto, Mosquitto, until_true
from tests.end_to_end.secured import need_commands, password, set_up
from tests.support_missing import lacks
from tests.support_readme import BIN, CHECKOUT, block, commands, here, replaced, succeeds
from tests.support_wheel import build_wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the wheel, built once: a test copies it to where its commands look for it."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_a_device_and_the_cloud_run_as_shown(built, warm_jvm, tmp_path):
    make_venv, install, agent = commands(block("device"))
    assert make_venv == "python3 -m venv ~/lasp"
    cloud_install, cloud = commands(block("cloud"))
    wheel = Path(shutil.copy(built, tmp_path))
    assert f"`dist/{wheel.name}`" in (CHECKOUT / "README.md").read_text()
    for line in (install, cloud_install):
        words = here(line, tmp_path, "")
        assert words[:2] == [str(BIN / "pip"), "install"]
        quickly = ["--dry-run", "--no-deps", "--no-index", "--quiet"]
        succeeds([*words[:2], *quickly, *words[2:]], tmp_path)
    rest = [line for line in block("broker").splitlines() if not line.startswith("listener")]
    with ConfiguredMosquitto(tmp_path / "broker", *rest) as broker:
        running = subprocess.Popen(
            here(agent, tmp_path, broker.url), cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        try:
            assert "global_average" in running.stdout.readline()
            words = [*here(cloud, tmp_path, broker.url), "--until-idle", "5", "--trigger", "5"]
            with warm_jvm.lent():
                output = succeeds(words, tmp_path, timeout=PATIENCE_S)
            assert "1 device heard" in output
            told = succeeds(here(block("status"), tmp_path, broker.url), tmp_path)
            assert "device kitchen" in told
        finally:
            running.terminate()
            assert running.wait(timeout=PATIENCE_S) == 0


@pytest.mark.slow
def test_a_pi_serves_the_wheel_to_the_others_as_shown(built, tmp_path):
    pack, serve = commands(block("serve the wheel"))
    (tmp_path / "wheels").mkdir()
    wheel, port = Path(shutil.copy(built, tmp_path / "wheels")), free_port()
    words = here(pack, tmp_path, "")
    assert words == [str(BIN / "pip"), "wheel", "--wheel-dir", str(wheel.parent), f"./{wheel.name}"]
    places = {"192.168.1.10": "127.0.0.1", "8000": str(port), "python3": sys.executable}
    server = subprocess.Popen(here(replaced(serve, places), tmp_path, ""), cwd=tmp_path)
    try:
        until_true(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        (fetch,) = commands(block("fetch the wheel"))
        words = here(replaced(fetch, places), tmp_path, "")
        assert words[:3] == [str(BIN / "pip"), "install", "--no-index"]
        succeeds([*words, "--no-deps", "--quiet", "--target", str(tmp_path / "there")], tmp_path)
        assert (tmp_path / "there" / "lasp_edge").is_dir()
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_S)


@pytest.mark.slow
@pytest.mark.broker
def test_a_device_logs_in_at_the_broker_that_is_configured_as_shown(tmp_path):
    need_commands("openssl", "mosquitto_passwd")
    (line,) = commands(block("secure broker"))
    files, port = tmp_path / "mosquitto", free_port()
    words = shlex.split(replaced(line, {"/etc/mosquitto": str(files), "broker.local": "localhost"}))
    assert words[:2] == ["sudo", "lasp-edge"]
    account = pwd.getpwuid(os.geteuid()).pw_name
    here_only = ["--port", str(port), "--data", str(tmp_path), "--account", account]
    told = succeeds([str(BIN / "lasp-edge"), *words[2:], *here_only], tmp_path)
    set_up(told.splitlines(), tmp_path)
    (tmp_path / "lasp").mkdir()
    (tmp_path / "lasp/ca.pem").write_text((files / "ca.pem").read_text())
    login = tmp_path / "lasp/login"
    login.write_text(f"kitchen\n{password('kitchen')}\n")
    login.chmod(0o600)
    (agent,) = commands(block("secure device"))
    agent = agent.replace("broker.local:8883", f"localhost:{port}")
    with Mosquitto(tmp_path / "run", (files / "mosquitto.conf").read_text(), port):
        running = subprocess.Popen(
            here(agent, tmp_path, ""), cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        try:
            assert any(line.rstrip().endswith("; connected") for line in running.stdout)
        finally:
            running.terminate()
            assert running.wait(timeout=PATIENCE_S) == 0


@pytest.mark.slow
@pytest.mark.broker
def test_a_device_signs_as_shown(tmp_path):
    if importlib.util.find_spec("cryptography") is None:
        lacks("the extra `signed` is not installed")
    install, *keys, agent = commands(block("signed"))
    assert install == f"~/lasp/bin/pip install './lasp_edge-{RELEASE}-py3-none-any.whl[signed]'"
    for line in keys:
        succeeds(["sh", "-c", f"PATH={BIN}:$PATH; {line}"], tmp_path)
    with PrivateBroker(tmp_path / "broker") as broker:
        running = subprocess.Popen(
            [*here(agent, tmp_path, broker.url), "--with-tag", "room=kitchen"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert any(line.rstrip().endswith("; connected") for line in running.stdout)
        finally:
            running.terminate()
            assert running.wait(timeout=PATIENCE_S) == 0
