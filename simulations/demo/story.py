"""What happens in the demo, in order: live, or from a recorded file."""

import asyncio
import contextlib
from itertools import islice
from textwrap import wrap

from simulations.demo import evening
from simulations.demo.chaos import Accident, Kind, accidents_of
from simulations.demo.mishaps import cut_off, kill
from simulations.demo.operator import say_of_later, say_of_the_past
from simulations.demo.stage import Stage

START_S = 60.0
SPARK_S = 90.0
SETTLE_S = 60.0
MEASURE_S = 2.0
KILLED_S = 2.0
BETWEEN_S = 4.0
CUT_OFF_S = 8.0
STALLED_S = 90.0
ACCIDENTS = 8
WIDTH = 79


async def open_stage(stage: Stage) -> None:
    """Start everything and say what was started."""
    say = stage.say
    broker = stage.broker
    say(f"Broker: {broker.kind} on 127.0.0.1:{broker.port}. {stage.cast.merging.beginning}")
    if broker.lacks:
        text = f"No mosquitto was found, so {broker.kind} stands in: {broker.lacks}."
        say(*wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  "))
    await stage.start_cloud()
    await stage.start_devices()
    await stage.until(stage.all_report, START_S, "all agents running")


async def live(stage: Stage) -> float:
    """Measure rooms while devices fail; then stop measuring.

    Returns:
        How long the devices measured, in seconds.
    """
    clock = asyncio.get_running_loop().time
    merging = stage.cast.merging
    stage.say(*merging.introduction, "")
    await open_stage(stage)
    began = clock()
    stage.note_complete()
    names = f"Devices: {', '.join(stage.devices)}. They measure, and talk."
    stage.say(*wrap(names, WIDTH))
    await (_day if merging.is_spark else evening.live)(stage)
    for device in stage.devices.values():
        device.stop_sources()
    measured_s = clock() - began
    stage.say("Measuring stops. The devices exchange what they know until all hold the same.")
    await stage.until(stage.is_settled, SETTLE_S, "agreed")
    return measured_s


async def _day(stage: Stage) -> None:
    """Kill one device and cut another off, while Spark starts and merges; change parameters."""
    _, second, _, fourth, *_ = stage.devices.values()
    await say_of_later(stage)
    await stage.pass_time(MEASURE_S)
    started = f"started {stage.cast.merging.name}"
    await stage.until(stage.cloud_is_ready, SPARK_S, started, moving=stage.cloud_progress)
    await kill(stage, second, KILLED_S)
    await stage.pass_time(BETWEEN_S)
    await cut_off(stage, fourth, CUT_OFF_S)
    await say_of_the_past(stage)


async def replay(stage: Stage, chaos_seed: int | None) -> None:
    """Have each device read its part of a file, with accidents where they are asked for."""
    await open_stage(stage)
    stage.say(
        f"Devices: {len(stage.devices)} agents; each reads its own device's lines of the file."
    )
    if chaos_seed is not None:
        stage.say(f"Accidents: {ACCIDENTS} at random; to repeat them: --chaos --seed {chaos_seed}")
    accidents = asyncio.create_task(_accidents(stage, chaos_seed))
    try:
        what = "all read, sent and agreed on, and nothing moves"
        await stage.until(stage.is_settled, STALLED_S, what, moving=stage.progress)
    finally:
        accidents.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await accidents
    stage.say("All readings are read, and all results have reached the lake.")


async def _accidents(stage: Stage, seed: int | None) -> None:
    if seed is None:
        return
    for accident in islice(accidents_of(seed, list(stage.devices)), ACCIDENTS):
        await asyncio.sleep(accident.after_s)
        await _befall(stage, accident)


async def _befall(stage: Stage, accident: Accident) -> None:
    device = stage.devices[accident.device]
    if accident.kind is Kind.KILL_CLOUD:
        job = "The cloud job" if stage.cast.merging.is_spark else "The gateway"
        stage.say(f"{job} is killed, and started again {accident.lasts_s:.1f} s later.")
        await stage.kill_cloud()
        await asyncio.sleep(accident.lasts_s)
        await stage.start_cloud()
        return
    stage.say(f"{device.name} is {accident.kind} for {accident.lasts_s:.1f} s.")
    if accident.kind is Kind.KILL:
        await device.kill()
        await asyncio.sleep(accident.lasts_s)
        await device.start()
    else:
        device.cut_off()
        await asyncio.sleep(accident.lasts_s)
        device.let_in()
