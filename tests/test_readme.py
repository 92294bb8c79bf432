"""The README tells the truth: every block in it is run, and its programs give what it says."""

import re
import shlex
import subprocess
import tomllib
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from random import Random

import pytest
import yaml

from device_agent.agent.sources.choice import source_of
from device_agent.console.command import run_agent
from device_agent.console.configuration.alert_options import caller_of
from lasp_edge.examples import greenhouse
from lasp_edge.folds.numbers import Resolution
from lasp_edge.tool.command_line import GROUP, run_command
from lasp_edge.tool.loading import load_plan
from simulations.fleet import Fleet
from tests.support_readme import BLOCKS, CHECKOUT, MARKS, PAGES, block, commands, here, succeeds
from tests.support_wheel import PROJECT


def test_every_block_is_run_by_a_test_here():
    marked = [block(name) for name in MARKS]
    assert sorted(marked) == sorted(b.text for b in BLOCKS)
    tests = Path(__file__).parent
    readers = [*tests.glob("*readme*.py"), tests / "simulations" / "test_demo_live.py"]
    source = "".join(path.read_text() for path in readers)
    assert all(f'block("{name}")' in source for name in MARKS)


def test_the_first_page_is_short():
    assert len((CHECKOUT / "README.md").read_text().splitlines()) <= 250


LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page):
    """Return what GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page):
    for link in LINK.findall(page.read_text()):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), link
            assert not anchor or anchor in anchors(target), link


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


COMMANDS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["entry-points"][
    GROUP
]


def parsed(command):
    """Return the arguments of a `lasp-edge` command line, parsed by its own parser."""
    words = shlex.split(command.replace("\\\n", " "))
    module = COMMANDS[words[1]]
    parser = ArgumentParser(exit_on_error=False)
    import_module(module).add_arguments(parser)
    return parser.parse_args(words[2:])


def test_the_service_starts_the_agent():
    install, *then = commands(block("service"))
    arguments = parsed(install.removeprefix("sudo "))
    assert arguments.action == "install"
    agent = parsed(f"lasp-edge agent {shlex.join(arguments.agent)}")
    assert agent.program == "lasp_edge.examples.greenhouse:program"
    assert agent.source == ["host"]
    assert then == ["sudo systemctl daemon-reload", "sudo systemctl enable --now lasp-edge"]


def test_recorded_files_give_readings_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("attic.csv").write_text("ts,temp,location\n1700000000,21,attic\n")
    Path("cellar.jsonl").write_text('{"time": 1700000000, "temperature": 9}\n')
    begin = 'program = "lasp_edge.examples.greenhouse:program"\ndevice = "a"\ndata-dir = "d"\n'
    Path("fleet.toml").write_text(f'{begin}broker = "mqtt://127.0.0.1"\n{block("recorded files")}')
    wanted = run_agent.requested(parsed("lasp-edge agent --config fleet.toml"))
    plan = load_plan(wanted.arguments.program)
    for spec, room, value in zip(wanted.specs, ["attic", "cellar"], [21, 9], strict=True):
        source = source_of(spec, wanted.context(spec, plan, None, Random(1)))
        source.open(None)
        batch = source.poll(1_700_000_000_000_000)
        assert (batch.values, batch.tags) == ([value], [{"room": room}])


def test_a_new_program_is_checked_as_shown(tmp_path, monkeypatch, capsys):
    new, change, check, agent = commands(block("new"))
    monkeypatch.chdir(tmp_path)
    assert run_command("new", COMMANDS["new"], shlex.split(new)[2:]) == 0
    assert change == "cd house"
    assert check in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "house")
    assert parsed(agent).config.exists()
    (doctor,) = commands(block("doctor"))
    assert parsed(doctor).config.exists()


def test_sources_are_tried_as_shown():
    for command in commands(block("try")):
        arguments = parsed(command)
        assert arguments.source[0].startswith("mqtt:zigbee2mqtt/")
        assert arguments.program is None or load_plan(arguments.program)


def test_the_containers_that_are_shown_exist():
    up, watch = commands(block("containers"))
    services = yaml.safe_load((CHECKOUT / "compose.yaml").read_text())["services"]
    assert up == "docker compose up --build"
    *compose, service, _, _ = shlex.split(watch.partition(" lasp_edge.")[0])
    assert (compose, service in services) == (["docker", "compose", "exec"], True)
    looked = parsed(watch[watch.index("lasp-edge") :])
    assert looked.broker == "mqtt://broker"
    assert load_plan(looked.program).name == "machines"


def test_cluster_commands_parse():
    lander, job = map(parsed, commands(block("cluster")))
    assert lander.lake == job.lake == "/mnt/lake"
    assert job.master == "spark://cluster:7077"
    assert job.no_lander


def test_what_spark_submit_is_given_parses():
    (line,) = commands(block("submitted"))
    begin = "spark-submit --master spark://cluster:7077 $(python -m cloud_tier.command.submit job) "
    assert line.startswith(begin)
    job = parsed("lasp-edge cloud " + line.removeprefix(begin))
    assert (job.no_lander, job.lake) == (True, "/mnt/lake")


def test_commands_for_an_object_store_parse():
    lander, job = map(parsed, commands(block("object store")))
    assert lander.lake == job.lake == "s3a://bucket/lake"
    assert (lander.log_dir, job.no_lander) == (Path("./log"), True)
    assert all(starts.startswith("spark.") for starts in job.conf)


def test_a_shared_lander_parses():
    (line,) = commands(block("shared"))
    assert (parsed(line).share, parsed(line).log_dir) == ("landers", Path("./log-a"))


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
    for device in fleet.devices.values():
        by_key = device.core.results.plain()["rooms"]["keys"]
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


def test_cellars_act_on_their_values():
    shown = {}
    exec(block("acting"), shown)
    plan = shown["program"].plan()
    fleet = Fleet(plan, size=3, seed=7)
    for number, value in enumerate([3.9, 30, 55]):
        fleet.read(f"pi-{number}", "temperature", value, {"room": "cellar"})
    fleet.step(75)
    for device in fleet.devices.values():
        said = device.core.report()["alerts"]["too warm"]
        assert (said["state"], said["devices"]) == ("on", ["pi-0", "pi-1", "pi-2"])
        assert said["value"] == pytest.approx((3.9 + 30 + 55) / 3)
    fleet.read("pi-2", "temperature", 55)
    fleet.settle()
    notices = fleet.devices["pi-1"].core.variables.shared()["notices"]
    assert notices == {"3.9 °C on pi-0", "pi-2 is far above the fleet's mean"}
    fleet.close()


def test_the_options_for_alerts_are_those_of_the_agent():
    (command,) = commands(block("alerting"))
    words = shlex.split(command)
    parser = ArgumentParser()
    run_agent.add_arguments(parser)
    arguments = parser.parse_args(words[2:])
    arguments.alert_command = "true"  # logger is not everywhere
    assert caller_of(arguments, Random(1)) is not None


@pytest.mark.slow
def test_doors_are_followed_on_every_device():
    shown = {}
    exec(block("doors"), shown)
    fleet = Fleet(shown["program"].plan(), size=3, seed=7)
    for number, room in enumerate(["1a", "2b", "3c"]):
        fleet.read(f"pi-{number}", "door", 1, {"room": room})
    fleet.read("pi-0", "door", -1, {"room": "3c"})
    fleet.settle()
    for device in fleet.devices.values():
        results = device.core.results.plain()
        assert results["to_check"]["elements"] == ["3c"]
        assert results["floors"]["elements"] == ["1", "2", "3"]
        assert device.core.variables.shared()["notices"] == {"doors were open on 3 floors"}
    fleet.close()


def test_members_commands_parse():
    listed, retired, admitted = map(parsed, commands(block("members")))
    assert listed.broker == retired.broker == admitted.broker == "mqtt://192.168.1.10"
    assert retired.device == admitted.device == "kitchen"


@pytest.mark.slow
def test_simulated_fleet_agrees_as_shown():
    exec(block("fleet"), {})


def test_a_replayed_fleet_agrees_as_shown():
    exec(block("replay"), {})


def test_commands_that_delete_from_a_lake_and_watch_it_parse():
    device, key, retained = map(parsed, commands(block("deleting")))
    assert (device.device, key.key, retained.days) == ("attic", "attic", 400)
    (behind,) = commands(block("lake behind"))
    assert parsed(behind).fail_if_behind == 900


def test_house_lists_every_package():
    listed = {line.split("/")[0] for line in block("house").splitlines() if line[0] != " "}
    found = {path.parent.name for path in CHECKOUT.glob("*/__init__.py")} | {"tests"}
    assert listed == found


def test_dashboard_commands_parse():
    (command,) = commands(block("dashboard"))
    shown = parsed(command)
    assert (shown.broker, shown.lake) == ("mqtt://192.168.1.10", "./lake")
    _, phone = commands(block("phone"))
    assert (parsed(phone).host, parsed(phone).page_login) == ("0.0.0.0", Path("page-password"))
    (tunnel,) = commands(block("tunnel"))
    assert f"{shown.port}:localhost:{shown.port}" in tunnel
    assert f"http://127.0.0.1:{shown.port}/" in (CHECKOUT / "docs" / "home.md").read_text()


def test_the_gateway_parses():
    (command,) = commands(block("gateway"))
    shown = parsed(command)
    assert (shown.broker, shown.name) == ("mqtt://192.168.1.10", "gateway")
    assert shown.data_dir == Path("~/lasp/gateway")


def test_a_window_is_drawn_where_the_gateway_keeps_it():
    install, line = commands(block("plot"))
    shown = parsed(line.replace("~/lasp/bin/", ""))
    assert (shown.name, shown.gateway) == ("temperature_by_room", "~/lasp/gateway")
    (extra,) = re.findall(r"whl\[(\w+)\]", install)
    assert extra in PROJECT["project"]["optional-dependencies"]
