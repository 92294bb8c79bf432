"""The README tells the truth: every block in it is run, and shown output is what comes out."""

import configparser
import importlib.util
import json
import os
import pwd
import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from lasp_edge import folds
from lasp_edge.examples import greenhouse
from lasp_edge.folds.numbers import Resolution
from lasp_edge.tool.command_line import run_command
from simulations.demo.broker import PrivateBroker
from simulations.fleet import Fleet
from tests.brokers import ConfiguredMosquitto, Mosquitto, free_port
from tests.end_to_end.secured import password, set_up
from tests.support_missing import lacks

CHECKOUT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
README = (CHECKOUT / "README.md").read_text()


class Block(NamedTuple):
    language: str
    text: str


FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [Block(*found) for found in FENCED.findall(README)]

# How each block begins, or what it holds; every block is one of these, and each is used below.
MARKS = {
    "greenhouse": ("python", 'program = Program("greenhouse")'),
    "make": ("sh", "make demo"),
    "demo output": ("text", "RESULT ok"),
    "broker": ("text", "listener 1883"),
    "device": ("sh", "python3 -m venv"),
    "service": ("ini", "ExecStart"),
    "status": ("sh", "lasp-edge status"),
    "secure broker": ("sh", "broker config"),
    "secure device": ("sh", "--ca-file"),
    "signed": ("sh", "keys new"),
    "cloud": ("sh", "pip install '.[cloud]'"),
    "cluster": ("sh", "--no-lander"),
    "recording": ("json", "attic-pi"),
    "trial": ("sh", "--replay readings.jsonl"),
    "trial output": ("csv", "key,start_us"),
    "deltalake": ("python", "newest = 1"),
    "duckdb": ("python", "import duckdb"),
    "spark": ("python", "spark_session"),
    "merged view": ("sql", "max_by(count, seq)"),
    "sketches": ("sql", "hll_sketch_estimate"),
    "cold chain": ("python", "cold-chain"),
    "rooms": ("python", 'Program("rooms")'),
    "own fold": ("python", "class Range"),
    "check": ("sh", "lasp-edge check"),
    "simulate": ("sh", "lasp-edge simulate"),
    "doors": ("python", 'Program("doors")'),
    "members": ("sh", "lasp-edge members"),
    "fleet": ("python", "seed=42"),
    "house": ("", "crdts/          CRDTs"),
}


def block(name):
    language, mark = MARKS[name]
    (found,) = [b.text for b in BLOCKS if b.language == language and mark in b.text]
    return found


def test_every_block_is_run_by_a_test_here():
    marked = [block(name) for name in MARKS]
    assert sorted(marked) == sorted(b.text for b in BLOCKS)
    source = Path(__file__).read_text()
    assert all(source.count(f'block("{name}")') >= 1 for name in MARKS)


def test_greenhouse_is_the_example_module():
    shown = {}
    exec(block("greenhouse"), shown)
    shown = shown["program"].plan()
    plan = greenhouse.program.plan()
    assert {name: window.stream for name, window in shown.windows.items()} == {
        name: window.stream for name, window in plan.windows.items()
    }
    ours, theirs = (p.dynamic_folds["global_average"].stream for p in (shown, plan))
    assert ours == theirs


def test_two_commands_are_targets_and_ci_calls_the_second():
    commands = block("make").splitlines()
    assert commands == ["make demo", "make test"]
    for command in commands:
        planned = subprocess.check_output([*command.split(), "--dry-run"], cwd=CHECKOUT, text=True)
        assert ("lasp-edge demo" in planned) or ("pytest" in planned)
    assert "make test" in (CHECKOUT / ".ci" / "run").read_text()


def shape(line):
    """A line without what differs from run to run."""
    return re.sub(r"[\d.,:-]*\d[\d.,:-]*", "#", line).split()


def checks_shown():
    """Return how each check begins in the demo's output that is shown; the demo's test wants it."""
    lines = [line for line in block("demo output").splitlines() if re.match(r"\s*\([a-e]\)", line)]
    assert len(lines) >= 5
    return [shape(line)[:4] for line in lines]


def parsed(command):
    """Return the arguments of a `lasp-edge` command line, parsed by its own parser."""
    words = shlex.split(command.replace("\\\n", " "))
    places = {"demo": "simulations.demo"}
    places |= dict.fromkeys(("agent", "status", "members", "retire", "admit"), "device_agent")
    name = words[1]
    package = places.get(name, "cloud_tier")
    module = f"{package}.command" if name == "demo" else f"{package}.command.{name}"
    parser = ArgumentParser(exit_on_error=False)
    import_module(module).add_arguments(parser)
    return parser.parse_args(words[2:])


def commands(text):
    """Return the command lines of a block, continued lines joined."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def test_service_file_starts_the_agent():
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str
    unit.read_string(block("service").replace("\\\n", " "))
    arguments = parsed(unit["Service"]["ExecStart"])
    assert arguments.program == "lasp_edge.examples.greenhouse:program"
    assert arguments.source == ["host"]
    assert unit["Install"]["WantedBy"] == "multi-user.target"


def test_cluster_commands_parse():
    lander, job = map(parsed, commands(block("cluster")))
    assert lander.lake == job.lake == "s3a://bucket/lake"
    assert job.master == "spark://cluster:7077"
    assert job.no_lander


def replaced(text, pairs):
    for before, after in pairs.items():
        text = text.replace(before, after)
    return text


def here(command, home, broker):
    """Return a command line of the README as words, for this machine and this broker."""
    places = {"mqtt://192.168.1.10": broker, "~/lasp/bin/": f"{BIN}/", "~/": f"{home}/"}
    words = shlex.split(replaced(command, places))
    return [str(BIN / words[0]) if words[0] in {"lasp-edge", "pip"} else words[0], *words[1:]]


def succeeds(words, home, timeout=120):
    done = subprocess.run(
        words,
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_a_device_and_the_cloud_run_as_shown(tmp_path):
    make_venv, install, agent = commands(block("device"))
    assert make_venv == "python3 -m venv ~/lasp"
    cloud_install, cloud = commands(block("cloud"))
    for line in (install, cloud_install):
        words = here(line, tmp_path, "")
        assert words[:2] == [str(BIN / "pip"), "install"]
        succeeds([*words[:2], "--dry-run", "--no-deps", "--quiet", *words[2:]], CHECKOUT)
    rest = [line for line in block("broker").splitlines() if not line.startswith("listener")]
    with ConfiguredMosquitto(tmp_path / "broker", *rest) as broker:
        running = subprocess.Popen(
            here(agent, tmp_path, broker.url), cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        try:
            assert "global_average" in running.stdout.readline()
            output = succeeds([*here(cloud, tmp_path, broker.url), "--until-idle", "5"], tmp_path)
            assert "1 device heard" in output
            told = succeeds(here(block("status"), tmp_path, broker.url), tmp_path)
            assert "device kitchen" in told
        finally:
            running.terminate()
            assert running.wait(timeout=20) == 0


@pytest.mark.slow
@pytest.mark.broker
def test_a_device_logs_in_at_the_broker_that_is_configured_as_shown(tmp_path):
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
            assert running.wait(timeout=20) == 0


@pytest.mark.slow
@pytest.mark.broker
def test_a_device_signs_as_shown(tmp_path):
    if importlib.util.find_spec("cryptography") is None:
        lacks("the extra `signed` is not installed")
    install, *keys, agent = commands(block("signed"))
    assert install == "pip install '.[signed]'"
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
            assert running.wait(timeout=20) == 0


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """A folder with the lake that the README's trial run of a recording leaves."""
    home = tmp_path_factory.mktemp("trial")
    (home / "readings.jsonl").write_text(block("recording"))
    demo, windows = commands(block("trial"))
    told = succeeds(here(demo, home, ""), home, timeout=240)
    assert told.splitlines()[-1] == "RESULT ok"
    return home, succeeds(["sh", "-c", f"PATH={BIN}:$PATH; {windows}"], home)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_trial_gives_the_windows_that_are_shown(trial):
    _, printed = trial
    # How often a window was revised tells in how many batches its readings came.
    shown, printed = (
        re.sub(r",\d+$", "", t, flags=re.MULTILINE) for t in (block("trial output"), printed)
    )
    assert printed == shown


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_lake_opens_in_deltalake_and_duckdb(trial):
    home, _ = trial
    first = succeeds([sys.executable, "-c", block("deltalake")], home)
    assert "'attic'" in first
    assert "'count': " in first
    assert "attic" in succeeds([sys.executable, "-c", block("duckdb")], home)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_lake_opens_in_spark_and_its_merged_view_holds_every_reading_once(trial):
    home, _ = trial
    view = block("merged view")
    query = f"merged = spark.sql({view!r}).collect()\n"
    total = "print('READINGS', sum(row['count'] for row in merged))"
    told = succeeds([sys.executable, "-c", block("spark") + query + total], home)
    assert "|" in told
    accepted = [json.loads(line) for line in block("recording").splitlines()]
    known = {(r["ts"], r["device"], r["data"]["temp"]) for r in accepted}
    assert f"READINGS {len([k for k in known if k[2] is not None])}" in told


def image(*values):
    return folds.distinct().lift_column(values, [0] * len(values))[0]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_joins_sketches_by_its_own_functions(spark):
    rows = [("a", "attic", 0, 0, image(1)), ("a", "attic", 0, 1, image(1, 2, 3))]
    rows += [("a", "cellar", 0, 0, image(3, 4)), ("b", "attic", 0, 0, image(9))]
    columns = "window string, key string, start_us long, revision int, seen_distinct_hll12 binary"
    spark.createDataFrame(rows, columns).createOrReplaceTempView("windows")
    found = spark.sql(block("sketches")).collect()
    assert sorted((row["window"], row["seen"]) for row in found) == [("a", 4), ("b", 1)]


def test_cold_chain_program_is_valid():
    shown = {}
    exec(block("cold chain"), shown)
    program = shown["program"].plan()
    assert program.windows["by_truck"].fold.columns_named[-1] == "warmest_max_q"
    assert program.dynamic_folds["everywhere"].resolution.text == "0.1"


def test_own_fold_gives_what_it_says():
    shown = {}
    exec(block("own fold"), shown)
    fold = shown["Range"]().checked()
    partial = fold.combine(fold.lift(-30), fold.combine(fold.lift(45), fold.lift(10)))
    assert fold.lower(partial, Resolution("0.1")) == {"range": 7.5}


@pytest.mark.slow
def test_rooms_have_a_value_each_on_every_device():
    shown = {}
    exec(block("rooms"), shown)
    fleet = Fleet(shown["program"].plan(), size=3, seed=7)
    for number, room in enumerate(["attic", "cellar", "attic"]):
        fleet.read(f"pi-{number}", "temperature", 20 + number, {"room": room})
    fleet.settle()
    for agent in fleet.devices.values():
        by_key = agent.core.results.plain()["rooms"]["keys"]
        assert {room: value["parts"]["mean"] for room, value in by_key.items()} == {
            "attic": 21.0,
            "cellar": 21.0,
        }
    fleet.close()


@pytest.mark.slow
def test_check_finds_nothing_wrong_with_the_example(tmp_path):
    (command,) = commands(block("check"))
    assert "Every law holds" in succeeds(here(command, tmp_path, ""), tmp_path)


def test_the_simulated_greenhouse_ends_right(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (command,) = commands(block("simulate"))
    _, name, *words = shlex.split(command)
    assert run_command(name, "simulations.simulate.command", words) == 0
    assert "windows are what the oracle says" in capsys.readouterr().out
    assert (tmp_path / "run.html").exists()


@pytest.mark.slow
def test_doors_are_followed_on_every_device():
    shown = {}
    exec(block("doors"), shown)
    fleet = Fleet(shown["program"].plan(), size=3, seed=7)
    for number, room in enumerate(["1a", "2b", "3c"]):
        fleet.read(f"pi-{number}", "door", 1, {"room": room})
    fleet.read("pi-0", "door", -1, {"room": "3c"})
    fleet.settle()
    for agent in fleet.devices.values():
        results = agent.core.results.plain()
        assert results["to_check"]["elements"] == ["3c"]
        assert results["floors"]["elements"] == ["1", "2", "3"]
        assert agent.core.variables.shared()["notices"] == {"doors were open on 3 floors"}
    fleet.close()


def test_members_commands_parse():
    listed, retired, admitted = map(parsed, commands(block("members")))
    assert listed.broker == retired.broker == admitted.broker == "mqtt://192.168.1.10"
    assert retired.device == admitted.device == "kitchen"


@pytest.mark.slow
def test_simulated_fleet_agrees_as_shown():
    exec(block("fleet"), {})


def test_house_lists_every_package():
    listed = {line.split("/")[0] for line in block("house").splitlines() if line[0] != " "}
    found = {path.parent.name for path in CHECKOUT.glob("*/__init__.py")} | {"tests"}
    assert listed == found
