"""What must hold of alerts and handlers of values that have keys: keys come, and are gone again.

All is computed from the values that a device holds, right after each of its turns:

- an alert is on for the keys whose value is beyond its level, and for no others; but one that an
  earlier process left on stays on, until it is known that nobody has its key any more
- a handler with a level is called for a key whose value has gone beyond it since the turn before,
  and for no others: a key that was gone, and is back, is a new one
- the broker holds what each alert says, and nothing of keys that are gone
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

from lasp_edge.folds.columns import Partial
from lasp_edge.language.raising import device_alerts
from simulations.world.device import VirtualDevice
from simulations.world.programs import ALERT_ABOVE, LATELY, OF_ROOMS, RISEN
from simulations.world.world import World

_Numbers = dict[str, Fraction | None]
_NONE: Final = frozenset[str]()


class KeyedActs:
    """Looks at what devices do with the values of their rooms, turn by turn."""

    def __init__(self) -> None:
        self._above: dict[tuple[str, int], frozenset[str]] = {}
        self._on: dict[tuple[str, int, str], frozenset[str]] = {}
        self._seen: dict[tuple[str, int, str], frozenset[str]] = {}
        self._connected_us: dict[tuple[str, int], int] = {}

    def connected(self, device: VirtualDevice, true_us: int) -> None:
        """Note when a device was connected last."""
        self._connected_us[device.name, device.core.replica.nonce] = true_us

    def wrong(self, device: VirtualDevice, level: Fraction, true_us: int) -> Iterator[str]:
        """Yield what is wrong after a device's turn; `level` is that of alerts, as it is now."""
        process = (device.name, device.core.replica.nonce)
        yield from self._risen(device, process)
        for name, variable in OF_ROOMS.items():
            if device.core.acting.values.is_ready(variable):
                yield from self._alert(device, (*process, name), level, true_us)

    def _risen(self, device: VirtualDevice, process: tuple[str, int]) -> Iterator[str]:
        numbers = _numbers(device, LATELY)
        above = _beyond(numbers, Fraction(ALERT_ABOVE))
        before = self._above.get(process)
        self._above[process] = above
        called = [key for name, key in RISEN if name == device.name]
        RISEN.clear()
        expected = above - (before or _NONE)
        if len(set(called)) < len(called) or not expected >= set(called):
            yield f"{device.name} calls a handler for {called}, and {sorted(expected)} have risen"
        elif before is not None and expected != set(called):
            yield f"{device.name} calls a handler for {called} only: {sorted(expected)} have risen"

    def _alert(
        self, device: VirtualDevice, at: tuple[str, int, str], level: Fraction, true_us: int
    ) -> Iterator[str]:
        core, name = device.core, at[2]
        assert core.acting.alerts is not None, "the program has alerts"
        variable, numbers = OF_ROOMS[name], _numbers(device, OF_ROOMS[name])
        statuses = core.acting.alerts.report()["alerts"].get(name, {"keys": {}})["keys"]
        on = frozenset([key for key, status in statuses.items() if status["state"] == "on"])
        expected = _beyond(numbers, level)
        self._seen[at] = seen = self._seen.get(at, _NONE) | numbers.keys()
        left = self._on.get(at, on) - seen if variable in core.agent.plan.dynamic_folds else _NONE
        self._on[at] = on
        if on - left != expected:
            yield f"{device.name}: {name} is on for {sorted(on - left)}, of {numbers} over {level}"
        hears_us = true_us - self._connected_us.get(at[:2], true_us)
        if left - on and hears_us < core.agent.settings.grace_us:
            yield f"{device.name}: {name} goes off for {left - on}, which others may still have"


def _other_keys(device: VirtualDevice) -> Iterator[str]:
    """Yield the alerts at rest that say something of other keys than the values have."""
    core = device.core
    assert core.acting.alerts is not None, "the program has alerts"
    for name, variable in OF_ROOMS.items():
        statuses = core.acting.alerts.report()["alerts"].get(name, {"keys": {}})["keys"].keys()
        keys = _numbers(device, variable).keys()
        lacks = keys - statuses if core.acting.values.is_ready(variable) else set[str]()
        gone = statuses - keys if variable in core.agent.plan.local_folds else set[str]()
        if lacks or gone:
            yield f"{device.name}: {name} lacks {sorted(lacks)}, and has {sorted(gone)}, who left"


def _numbers(device: VirtualDevice, variable: str) -> _Numbers:
    """Return what each key's value is, as a device's folds hold it."""
    core = device.core
    if variable in core.agent.plan.local_folds:
        return {key: _number(each) for key, each in core.samples.partials(variable).items()}
    return {key: _number(each.partial) for key, each in core.results.fleet()[variable].items()}


def _number(partial: Partial) -> Fraction | None:
    """Return a mean, or a greatest value; None without a sample."""
    *count, number = partial
    if not count:
        return None if number is None else Fraction(number)
    return Fraction(number, count[0]) if count[0] else None


def _beyond(numbers: _Numbers, level: Fraction) -> frozenset[str]:
    return frozenset([key for key, each in numbers.items() if each is not None and each > level])


def unpublished(world: World, device: VirtualDevice) -> Iterator[str]:
    """Yield where the broker does not hold what the alerts of a device at rest say."""
    core, topics = device.core, world.topics
    assert core.acting.alerts is not None, "the program has alerts"
    expected = dict[str, Any]()
    for name, statuses in core.acting.alerts.report()["alerts"].items():
        by_key = statuses["keys"].items() if "keys" in statuses else [(None, statuses)]
        expected |= {topics.alert(name, device.name, key): status for key, status in by_key}
    for topic, status in expected.items():
        held = json.loads(world.broker.retained.get(topic) or b"{}")
        if held != status:
            yield f"{device.name} says {status} of an alert, and the broker holds {held}"
    if world.scenario.keyed:
        yield from _other_keys(device)
    for topic in world.broker.retained if not device.forgot else ():
        if topics.is_alert(topic):
            address = topics.alert_address(topic)
            is_declared = address.name in device_alerts(core.agent.plan)
            if address.device == device.name and is_declared and topic not in expected:
                yield f"the broker holds {address}, and {device.name} has no such alert"
