"""The events of the demo, in order: a day with Spark, an evening without it, or a recorded file.

By day a device is killed and another one cut off, while Spark starts and merges. In the evening a
gateway merges and is killed, too, and one device is away for longer than windows wait. Both times
an operator changes a parameter for later and another one for a time that has passed.
"""

import json
from random import Random
from textwrap import wrap
from time import time_ns  # noqa: TID251 - an operator's times are those of this machine's clock
from typing import Any

from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US
from simulations.demo.devices import Condition, Device
from simulations.demo.settings import Setting
from simulations.demo.site import PATIENCE_S, WIDTH, Site
from simulations.processes.process import now_s

MEASURE_S = KILLED_S = SHORT_S = 2.0
"""A link tries to connect again after 0.5, 1, 2, 4 ... seconds: it is back in time after two."""
BETWEEN_S = 4.0
CUT_OFF_S = 8.0
GATEWAY_S = 3.0
LOOK_S = 2.0
LATER_S = 25
"""From when on a room is warm above another temperature: all devices know it before."""
WRONG_S = 20
"""For how long a thermometer is taken to have been wrong."""
LISTEN_S = 2.0
"""How long `lasp-edge set` listens to devices that are all there, and publish each second."""
ACCIDENTS = 8
_BY_DAY = (
    "Five devices, each its own process, measure five simulated rooms and agree on",
    "one average, though one crashes and one loses its network. Spark confirms it.",
)
_IN_THE_EVENING = (
    "Ten devices, each its own process, measure ten simulated rooms and agree on one",
    "average, though some fail. No Spark runs: a gateway keeps the windows of all.",
)


def live(site: Site) -> float:
    """Measure rooms while devices fail; then stop measuring.

    Returns:
        How long the devices measured, in seconds.
    """
    by_day = site.cast.has_spark
    site.say(*(_BY_DAY if by_day else _IN_THE_EVENING), "")
    _open(site)
    began_s = now_s()
    site.complete_us = time_ns() // 1_000
    for device in site.devices.values():
        device.begin()
    site.say(*wrap(f"Devices: {', '.join(site.devices)}. They measure, and talk.", WIDTH))
    (_day if by_day else _evening)(site)
    for device in site.devices.values():
        device.stop_sources()
    measured_s = now_s() - began_s
    site.say("Measuring stops. The devices exchange what they know until all hold the same.")
    site.until(site.is_settled, "agreed", site.progress)
    return measured_s


def _open(site: Site) -> None:
    """Start everything and name it."""
    broker, starts = site.broker, "The gateway is starting."
    if site.cast.has_spark:
        starts = "Spark is starting; that takes a while."
    site.say(f"Broker: {broker.kind} on 127.0.0.1:{broker.port}. {starts}")
    if broker.lacks:
        text = f"No mosquitto was found, so {broker.kind} stands in: {broker.lacks}."
        site.say(*wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  "))
    for device in site.devices.values():
        device.start()
    site.until(
        lambda: all(d.condition is Condition.RUNNING for d in site.devices.values()),
        "all agents running",
        site.progress,
    )
    # What merges waits for no device that has read nothing yet of a source with own times.
    site.merger.start()


def _day(site: Site) -> None:
    _, second, _, fourth, *_ = site.devices.values()
    _set_for_later(site)
    site.pass_time(MEASURE_S)
    site.until(site.merger.started, "started Spark", site.merger.progress)
    _kill(site, second)
    site.pass_time(BETWEEN_S)
    _cut_off(site, fourth, CUT_OFF_S)
    _set_for_the_past(site)


def _evening(site: Site) -> None:
    site.until(site.merger.started, "started the gateway")
    _set_for_later(site)
    _kill(site, site.devices["bedroom"])
    _cut_off(site, site.devices["kitchen"], SHORT_S)
    _outage(site, site.devices["garage"])
    _set_for_the_past(site)


def _kill(site: Site, device: Device) -> None:
    """Kill a device, and start it again some seconds later."""
    device.kill()
    site.say(f"{device.name} is killed (SIGKILL), as by a power failure ...")
    site.pass_time(KILLED_S)
    before = device.accepted
    device.start()
    site.until(lambda: device.condition is Condition.RUNNING, f"{device.name} back")
    site.say(
        f"... restarted: {before} readings had been reported before the crash, {device.accepted} "
        "were on disk."
    )


def _cut_off(site: Site, device: Device, away_s: float) -> None:
    """Take a device off the network for some seconds."""
    device.cut_off()
    site.say(f"{device.name} is cut off from the network and goes on measuring ...")
    site.pass_time(away_s)
    _let_in(site, device, away_s)


def _let_in(site: Site, device: Device, away_s: float) -> None:
    """Put a device that was cut off on the network again, and wait until it is connected."""
    device.let_in()
    since_s = now_s()
    site.until(lambda: device.is_connected, f"{device.name} connected again")
    waited_s = now_s() - since_s
    later = f"reconnects {waited_s:.0f} s later and " if waited_s >= 1 else ""
    site.say(f"... back after {away_s:.0f} s: it {later}sends what it measured.")


def _outage(site: Site, device: Device) -> None:
    """Cut a device off for longer than windows wait, and kill the gateway meanwhile."""
    wait_s = site.cast.wait_s
    assert wait_s is not None, "a gateway waits"
    began_s = now_s()
    device.lose_packets()
    site.say(
        f"{device.name} is out of reach, for longer than the {wait_s:g} s that windows wait ..."
    )
    site.pass_time(GATEWAY_S)
    site.merger.kill()
    site.merger.start()
    site.say("The gateway is killed (SIGKILL), and started again over what it kept.")
    site.pass_time(wait_s - GATEWAY_S)
    ends_s = now_s() + PATIENCE_S * site.cast.is_ours
    while not (shown := _waiting_for(site, device.name)) and now_s() < ends_s:
        site.pass_time(LOOK_S)
    site.say(*shown[-1:])
    _let_in(site, device, now_s() - began_s)


def _waiting_for(site: Site, device: str) -> list[str]:
    """Return a line for each row of the first window in which one device alone is missing."""
    window = next(iter(site.cast.plan.windows), "")
    (lines,) = site.ask(["windows", window, "--gateway", str(site.lake), "--json"])
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [
        f"... {window} {_clock(row['start_us'])} to {_clock(row['end_us'])}: tentative, "
        f"{row['devices_in']} of {row['devices_expected']} devices, waits for {device}"
        for row in rows
        if (row["status"], row["excluded"]) == ("tentative", device)
        and row["devices_in"] == row["devices_expected"] - 1
    ]


def _set_for_later(site: Site) -> None:
    from_us = _began_us(site) + LATER_S * SECOND_US
    what = f"from {_clock(from_us)} on, a room is warm above 25 °C, not 22 °C"
    _set(site, Setting("warm_above", "25", from_us), what)


def _set_for_the_past(site: Site) -> None:
    began_us = _began_us(site)
    until_us = began_us + WRONG_S * SECOND_US
    what = f"from {_clock(began_us)} to {_clock(until_us)}, cellar measured 0.3 °C too much"
    _set(site, Setting("offset", "-0.30", began_us, until_us, "cellar", is_late=True), what)


def _set(site: Site, setting: Setting, what: str) -> None:
    """Change a parameter while the devices go on, and print the command's answer.

    A program of the user's own has other parameters: they are left alone.
    """
    if not site.cast.is_ours:
        return
    site.say(f"An operator says: {what} ...")
    words = ["set", site.cast.spec, *setting.words(), "--broker", site.broker.url]
    (printed,) = site.ask([*words, "--listen", f"{LISTEN_S:g}"])
    site.settings.append(setting)
    for line in printed:
        site.say(*wrap(line, WIDTH, initial_indent="... ", subsequent_indent="      "))


def _clock(time_us: int) -> str:
    """Return the time of day, in UTC."""
    return shown_time(time_us).partition(" ")[2]


def _began_us(site: Site) -> int:
    return site.complete_us // SECOND_US * SECOND_US


def replay(site: Site, seed: int | None) -> None:
    """Have each device read its part of a file, with the accidents of a seed if there is one."""
    _open(site)
    count = len(site.devices)
    site.say(f"Devices: {count} agents; each reads its own device's lines of the file.")
    if seed is not None:
        site.say(f"Accidents: {ACCIDENTS} at random; to repeat them: --chaos --seed {seed}")
        chance = Random(seed)
        for _ in range(ACCIDENTS):
            _accident(site, chance)
    site.until(site.is_settled, "all read, sent and agreed on, and nothing moves", site.progress)
    site.say("All readings are read, and all results have reached the lake.")


def _accident(site: Site, chance: Random) -> None:
    """Kill the merger, or kill a device or cut it off; some seconds later, undo it."""
    site.pass_time(chance.uniform(0.5, 2.5))
    lasts_s, device = chance.uniform(0.2, 3.0), chance.choice(list(site.devices.values()))
    before, what, after = chance.choices(
        [
            (device.kill, f"{device.name} is killed", device.start),
            (device.cut_off, f"{device.name} is cut off", device.let_in),
            (site.merger.kill, f"{site.merger.who} is killed", site.merger.start),
        ],
        [4, 4, 1],  # a job in Spark takes long to start
    )[0]
    site.say(f"{what[0].upper()}{what[1:]} for {lasts_s:.1f} s.")
    before()
    site.pass_time(lasts_s)
    after()
