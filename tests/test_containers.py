"""The images and the compose file of this checkout name what exists, and run what can be run."""

import pytest

from lasp_edge.tool.loading import load_plan
from simulations.processes.broker import PrivateBroker
from tests.brokers import Mosquitto, free_port, runs_as_us
from tests.support_containers import CHECKOUT, compose, copied, parsed, stages
from tests.support_wheel import PACKAGES


@pytest.fixture
def fleet():
    return compose(CHECKOUT / "compose.yaml")


def test_each_command_is_one_that_its_own_parser_takes(fleet):
    services = fleet["services"]
    assert list(services) == ["broker", "one", "two", "cloud"]
    for name in ("one", "two"):
        agent = parsed(services[name])
        assert (agent.device, agent.broker, agent.source) == (name, "mqtt://broker", ["host"])
        assert services[name]["volumes"] == [f"{name}:{agent.data_dir}"]
        health = services[name]["healthcheck"]["test"]
        assert f":{agent.metrics}/healthz" in health[-1]
        compile(health[-1], name, "exec")
    job = parsed(services["cloud"])
    assert job.broker == "mqtt://broker"
    assert services["cloud"]["profiles"] == ["cloud"], "Spark is there for who asks for it"
    programs = {agent.program, job.program}
    assert [load_plan(program).name for program in programs] == ["machines"]


def test_images_are_made_of_stages_that_exist_and_of_files_that_are_here(fleet):
    made = stages(CHECKOUT / "Dockerfile")
    asked = [service["build"] for service in fleet["services"].values() if "build" in service]
    assert {each["target"] for each in asked} == {"device", "cloud"} <= made.keys()
    sources = [
        source
        for instructions in made.values()
        for word, rest in instructions
        if word == "COPY"
        for source in copied(rest)
    ]
    assert all((CHECKOUT / source).exists() for source in sources)
    assert {*PACKAGES, "pyproject.toml", "README.md", "LICENSE"} == set(sources)
    ignored = (CHECKOUT / ".dockerignore").read_text().split()
    assert not [each for each in sources if each in ignored]
    for name, instructions in made.items():
        for word, rest in instructions:
            if word == "COPY" and rest.startswith("--from="):
                assert rest.partition("=")[2].split()[0] in made, name


@pytest.mark.parametrize("stage", ["device", "cloud"])
def test_nobody_is_root(stage, fleet):
    made = stages(CHECKOUT / "Dockerfile")
    *_, user = [rest for word, rest in made[stage] if word == "USER"]
    assert user.isdigit()
    assert int(user) > 0
    assert ("ENTRYPOINT", '["lasp-edge"]') in made["device"]
    assert fleet["services"]["broker"]["user"] == "1883:1883"


@pytest.mark.broker
def test_the_broker_takes_its_configuration(fleet, tmp_path):
    text, port = (CHECKOUT / fleet["configs"]["broker"]["file"]).read_text(), free_port()
    for here, there in (("listener 1883", f"listener {port}"), ("/mosquitto/data", str(tmp_path))):
        assert here in text
        text = text.replace(here, there)
    with Mosquitto(tmp_path / "broker", "\n".join([text, *runs_as_us()]) + "\n", port) as broker:
        assert isinstance(broker, PrivateBroker)
