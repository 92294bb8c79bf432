"""What befalls a device on the stage: a power failure, a cut network."""

import asyncio

from simulations.demo.devices import Condition, Device
from simulations.demo.stage import Stage

BACK_S = 60.0
"""Seconds in which a device is back, at most."""


async def kill(stage: Stage, device: Device, away_s: float) -> None:
    """Kill a device, and start it again some seconds later."""
    before = device.report.accepted if device.report else 0
    await device.kill()
    stage.say(f"{device.name} is killed (SIGKILL), as by a power failure ...")
    await stage.pass_time(away_s)
    await device.start()
    await stage.until(lambda: device.condition is Condition.RUNNING, BACK_S, f"{device.name} back")
    after = device.report.accepted if device.report else 0
    stage.say(
        f"... restarted: {before} readings had been reported before the crash, {after} were on "
        "disk."
    )


async def let_in(stage: Stage, device: Device, away_s: float) -> None:
    """Put a device that was cut off on the network again, and wait until it is connected."""
    device.let_in()
    clock = asyncio.get_running_loop().time
    since_s = clock()
    await stage.until(
        lambda: device.report is not None and device.report.connected,
        BACK_S,
        f"{device.name} connected again",
    )
    waited_s = clock() - since_s
    later = f"reconnects {waited_s:.0f} s later and " if waited_s >= 1 else ""
    stage.say(f"... back after {away_s:.0f} s: it {later}sends what it measured.")


async def cut_off(stage: Stage, device: Device, away_s: float) -> None:
    """Take a device off the network for some seconds."""
    device.cut_off()
    stage.say(f"{device.name} is cut off from the network and goes on measuring ...")
    await stage.pass_time(away_s)
    await let_in(stage, device, away_s)
