"""Compose files and Dockerfiles as far as a machine without Docker can judge them."""

import re
import shlex
import tomllib
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).parent.parent
ENTRIES = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["entry-points"]
COMMANDS = ENTRIES["lasp_edge.commands"]
SERVICE_KEYS = {
    *("image", "build", "command", "user", "read_only", "cap_drop", "security_opt", "restart"),
    *("ports", "configs", "volumes", "depends_on", "tmpfs", "healthcheck", "profiles"),
    *("working_dir",),
}
"""The keys of a service that these files use, each a key of the Compose specification."""


def compose(path):
    """Return a compose file, after all that can be said of any."""
    said = yaml.safe_load(path.read_text())
    services, volumes = said["services"], said.get("volumes", {})
    for name, service in services.items():
        assert service.keys() <= SERVICE_KEYS, name
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert set(service.get("depends_on", ())) <= services.keys()
        assert {each["source"] for each in service.get("configs", ())} <= set(
            said.get("configs", ())
        )
        for each in service.get("configs", ()):
            told = said["configs"][each["source"]]
            assert told.keys() == {"file"}, "Compose mounts files; it copies nothing into read_only"
            assert (path.parent / told["file"]).exists()
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "nobody else reaches a broker without passwords"
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            if source.startswith("."):
                assert (path.parent / source).exists(), volume
            else:
                assert source in volumes, volume
    return said


def parsed(service):
    """Return the arguments of a service, parsed by the command's own parser."""
    name, *words = service["command"]
    parser = ArgumentParser(exit_on_error=False)
    command = import_module(COMMANDS[name])
    command.add_arguments(parser)
    return parser.parse_args(words)


def stages(dockerfile):
    """Return stage -> its instructions, as (word, rest), in order."""
    text = re.sub(r"\\\n", " ", dockerfile.read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = {}
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = [(word, base)]
        else:
            found[name].append((word, rest))
    return found


def copied(rest):
    """Return the sources of a COPY of the build's context; nothing for one of another stage."""
    words = shlex.split(rest)
    return [] if words[0].startswith("--from=") else words[:-1]
