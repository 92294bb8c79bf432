"""An agent without TLS does without OpenSSL, and leaves it to a program that wants it.

It does without other libraries, too, that Python's own modules would bring for little.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from device_agent.console import small_process
from tests.brokers import PATIENCE_S

PROGRAM = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

{wants}
program = Program("small")
event = program.event("x")
samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
program.fold_dynamic(program.fold(samples, folds.mean(), "here"), "everywhere")
print("OPENSSL", "libssl" in open("/proc/self/maps").read(), flush=True)
"""

WANTS = """
import hashlib, http.client, ssl, urllib.request
assert urllib.request.Request("http://example.org").host == "example.org"
assert ssl.create_default_context().check_hostname
assert hashlib.scrypt(b"x", salt=b"y", n=2, r=1, p=1)
assert http.client.HTTPSConnection("example.org").port == 443
"""


WRITES = """
import os, sys
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

{wants}
program = Program("writing")
event = program.event("x")
samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
program.fold_dynamic(program.fold(samples, folds.mean(), "here"), "everywhere")
program.window("window", source=event, fold=folds.mean(), size_s=60, key=lambda event: "")

@program.on_event(event)
def sampled(event, update):
    update(samples, BoundedLWWSet.add, event.value, event.time_us)
    unused = [name for name in {seldom} if "__file__" not in vars(sys.modules[name])]
    os.write(2, f"UNUSED {{unused}}\\n".encode())
"""
"""Most programs write like this one, which says at a reading which modules nobody has used yet."""
SELDOM = ["base64", "hashlib", "inspect", "ipaddress", "platform", "selectors", "traceback", "uuid"]
if sys.version_info >= (3, 12):
    SELDOM.remove("inspect")  # Each dataclass uses it.

LOOKS = """
from dataclasses import dataclass
from inspect import getattr_static, signature
import base64, hashlib, inspect, ipaddress, platform, selectors, traceback, urllib.parse, uuid

@dataclass
class Plain:
    here: int = 1

assert Plain.__doc__ == "Plain(here: int = 1)"
assert list(signature(Plain).parameters) == ["here"] == list(inspect.signature(Plain).parameters)
assert inspect.unwrap is sys.modules["inspect"].unwrap
assert not hasattr(inspect, "absent")
assert str(ipaddress.ip_address("127.0.0.1")) == "127.0.0.1"
assert urllib.parse.urlsplit("mqtt://[::1]:1883").hostname == "::1"
assert uuid.UUID(int=1).int == 1
assert base64.b64encode(b"x") == b"eA=="
assert hashlib.sha256(b"x").hexdigest() == hashlib.new("sha256", b"x").hexdigest()
assert (platform.system(), platform.machine()) == (os.uname().sysname, os.uname().machine)
assert selectors.DefaultSelector().get_map() is not None
assert traceback.format_exception_only(KeyError(1))[0].strip() == "KeyError: 1"
"""

HEAVY = ("libssl", "/_csv", "/unicodedata")
"""In the paths of libraries that an agent without TLS and a CSV file does without."""


def first_lines(folder, wants, *more, broker="mqtt://127.0.0.1:9"):
    (folder / "wanting.py").write_text(PROGRAM.format(wants=wants))
    (folder / "some.jsonl").write_text('{"x": 1}\n')
    words = [
        *("agent", "wanting:program", "--device", "pi-1", "--report", "0.1"),
        *(["--broker", broker] if broker else []),
        *("--data-dir", str(folder / "data"), "--source", f"jsonl:{folder / 'some.jsonl'}"),
        *more,
    ]
    agent = subprocess.Popen(
        [sys.executable, "-m", "lasp_edge", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        said = agent.stdout.readline(), json.loads(agent.stdout.readline())
        maps = Path(f"/proc/{agent.pid}/maps").read_text()
        heavy = [name.strip("/_") for name in HEAVY if name in maps]
        environment = Path(f"/proc/{agent.pid}/environ").read_text().split("\0")
        arenas = [line for line in environment if line.startswith("MALLOC_ARENA_MAX=")]
        return f"{said[0]}{' '.join(heavy)}", said[1] | {"arenas": arenas}
    finally:
        agent.terminate()
        agent.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("more", [[], ["--home-assistant"], ["--results", "1"]])
def test_agent_without_tls_loads_no_heavy_library(tmp_path, more):
    loaded, report = first_lines(tmp_path, "", *more)
    assert loaded == "OPENSSL False\n"
    assert report["device"] == "pi-1"


@pytest.mark.parametrize(("given", "arenas"), [(None, "1"), ("3", "3")])
def test_threads_of_a_small_process_share_what_was_given_back(tmp_path, monkeypatch, given, arenas):
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    if given is not None:
        monkeypatch.setenv("MALLOC_ARENA_MAX", given)
    _, report = first_lines(tmp_path, "")
    assert report["arenas"] == [f"MALLOC_ARENA_MAX={arenas}"]


def test_program_that_wants_openssl_gets_all_of_it(tmp_path):
    loaded, report = first_lines(tmp_path, WANTS)
    assert loaded.startswith("OPENSSL True\nlibssl")
    assert report["device"] == "pi-1"


@pytest.mark.parametrize(("wants", "unused"), [("", SELDOM), (LOOKS, [])], ids=["plain", "looks"])
def test_an_agent_imports_what_is_seldom_needed_when_it_is_needed(tmp_path, wants, unused):
    (tmp_path / "writing.py").write_text(WRITES.format(wants=wants, seldom=SELDOM))
    (tmp_path / "some.jsonl").write_text('{"t": 1700000000, "x": 1}\n')
    words = [
        *("agent", "writing:program", "--device", "pi-1", "--broker", "mqtt://127.0.0.1:9"),
        *("--data-dir", str(tmp_path / "data"), "--time", "t"),
        *("--source", f"jsonl:{tmp_path / 'some.jsonl'}"),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "lasp_edge", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as agent:
        said = [next((line for line in agent.stderr if "UNUSED" in line or "Error" in line), "")]
        agent.terminate()
        said += [line for line in agent.stderr if "Error" in line]
    assert said == [f"UNUSED {unused}\n"]


def test_agent_with_tls_has_openssl(tmp_path):
    loaded, _ = first_lines(tmp_path, "", broker="mqtts://127.0.0.1:9")
    assert loaded.startswith("OPENSSL True\nlibssl")


BROKER = 'program = "x:y"\nbroker = "{}"\n'
AT_ONCE = [
    (["--broker", "mqtt://h"], "", {}, True),
    (["--broker=MQTT://h"], "", {}, True),
    (["--broker", "mqtts://h"], "", {}, False),
    (["--config", "fleet.toml"], BROKER.format("mqtt://h"), {}, True),
    (["--config=fleet.toml"], BROKER.format("mqtts://h"), {}, False),
    (["--config", "fleet.toml"], BROKER.format("env:HOME_BROKER"), {}, False),
    (["--config", "fleet.toml"], BROKER.format("env:B"), {"B": "mqtt://h"}, True),
    (["--config", "fleet.toml"], BROKER.format("env:B"), {"B": "mqtts://h"}, False),
    (["--config", "missing.toml"], "", {}, False),
    (["--help"], "", {}, False),
]


@pytest.mark.parametrize(("words", "file", "variables", "is_small"), AT_ONCE)
def test_it_gets_small_before_it_imports_an_agent(
    tmp_path, monkeypatch, words, file, variables, is_small
):
    began = []
    monkeypatch.chdir(tmp_path)
    Path("fleet.toml").write_text(file)
    monkeypatch.setattr(sys, "argv", ["lasp-edge", "agent", *words])
    monkeypatch.setattr(os, "environ", variables)
    monkeypatch.setattr(small_process, "become_fitting", lambda *, secured: began.append(secured))
    small_process.begin_small()
    assert began == [False] * is_small


def test_a_broker_that_turns_out_to_want_tls_gets_a_process_with_openssl(tmp_path):
    file = tmp_path / "fleet.toml"
    file.write_text('# not mqtt://\nbroker = "mqt\\u0074s://127.0.0.1:9"\n')
    loaded, _ = first_lines(tmp_path, "", "--config", str(file), broker=None)
    assert loaded.startswith("OPENSSL True\nlibssl")
