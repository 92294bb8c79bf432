r"""Run a program on this device.

Readings come from one or more sources, go through the program, and are gossiped over MQTT until
the fleet agrees. SIGTERM stops the agent in order; after a crash it goes on where its data
directory stands. SIGUSR1 stops only the sources: the agent goes on until everything has landed.

  lasp-edge agent lasp_edge.examples.greenhouse:program --device kitchen \
      --broker mqtt://192.168.1.10 --data-dir /var/lib/lasp-edge \
      --source host --with-tag room=kitchen

All of it may stand in a file: lasp-edge agent --config fleet.toml
"""

import argparse

from device_agent.console.small_process import begin_small

SECTION = "a device"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; before the imports for them, which take long, the process gets small."""
    begin_small()
    from device_agent.console.configuration.agent_options import (  # noqa: PLC0415 - see above
        add_arguments as declare,
    )

    declare(parser)


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    from device_agent.console.command.run_agent import run as run_agent  # noqa: PLC0415

    return run_agent(given)
