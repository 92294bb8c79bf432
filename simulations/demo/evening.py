"""What happens to ten devices and their gateway where no Spark runs: the demo's `--no-cloud`.

In this order: a parameter is changed for later, a device is killed, one is cut off for a moment and
another one for longer than windows wait; the gateway is killed meanwhile. When all are back a
parameter is changed for a time that has passed.
"""

import asyncio
import re

from simulations.demo.devices import Device
from simulations.demo.mishaps import cut_off, kill, let_in
from simulations.demo.operator import say_of_later, say_of_the_past
from simulations.demo.stage import Stage

READY_S = 60.0
KILLED_S = 2.0
SHORT_S = 2.0
"""Its tries to connect again wait for 0.5, 1, 2, 4 ... seconds at most: so it is back in time."""
GATEWAY_S = 3.0
LOOK_S = 2.0
SHOWN_S = 40.0
"""A window is shown within that time after X, if one has readings of all other devices."""


async def live(stage: Stage) -> None:
    """Go through an evening."""
    await stage.until(stage.cloud_is_ready, READY_S, "started the gateway")
    await say_of_later(stage)
    await kill(stage, stage.devices["bedroom"], KILLED_S)
    await cut_off(stage, stage.devices["kitchen"], SHORT_S)
    await _outage(stage, stage.devices["garage"])
    await say_of_the_past(stage)


async def _outage(stage: Stage, device: Device) -> None:
    """Cut a device off for longer than windows wait, and kill the gateway meanwhile."""
    wait_s = stage.cast.wait_s
    assert wait_s is not None, "a gateway waits"
    now_s = asyncio.get_running_loop().time
    began_s = now_s()
    device.lose_packets()
    stage.say(
        f"{device.name} is out of reach, for longer than the {wait_s:g} s that windows wait ..."
    )
    await stage.pass_time(GATEWAY_S)
    await stage.kill_cloud()
    await stage.start_cloud()
    stage.say("The gateway is killed (SIGKILL), and started again over what it kept.")
    await stage.pass_time(wait_s - GATEWAY_S)
    shown: list[str] = []
    while not shown and now_s() - began_s < wait_s + SHOWN_S:
        await stage.pass_time(LOOK_S)
        shown = await stage.meanwhile(_lacking(stage, device.name))
    stage.say(*shown[-1:])
    await let_in(stage, device, now_s() - began_s)


async def _lacking(stage: Stage, device: str) -> list[str]:
    """Return a line for each row of the first window in which one device alone is missing."""
    window = next(iter(stage.cast.plan.windows), "")
    head, *rows = await stage.commands.windows(window, stage.lake) or [""]
    found = (_cells(head, row) for row in rows)
    return [
        f"... {window} {_clock(row['start'])} to {_clock(row['end'])}: tentative, "
        f"{row['devices_in']} of {row['devices_expected']} devices, waits for {device}"
        for row in found
        if row.get("waiting_for") == device
        and int(row["devices_in"]) == int(row["devices_expected"]) - 1
    ]


def _cells(head: str, row: str) -> dict[str, str]:
    """Return what stands below each word of a table's head.

    >>> _cells("key    end  waiting_for", "       7    garage")
    {'key': '', 'end': '7', 'waiting_for': 'garage'}
    """
    begins = [found.start() for found in re.finditer(r"\S+", head)]
    spans = [slice(*each) for each in zip(begins, [*begins[1:], None], strict=True)]
    return {head[span].strip(): row[span].strip() for span in spans}


def _clock(time: str) -> str:
    """Return the time of day."""
    return time.partition(" ")[2]
