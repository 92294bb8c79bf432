"""Alerts: on or off, on each device and for each key, published and handed on once a turn.

An alert is stored before anybody hears of it: when its key comes, and when it turns, with the
number of the turn. Its state is JSON that the broker retains, published again after each
connection. So is that its key is gone, once, and then it is forgotten: what a connection took
before it broke may have been lost. Where the agent was given a command or a webhook, each turn is
called out once it is durable, and forgotten once that has succeeded or was given up; after a crash
what is not forgotten is called out again. So each turn is called out at least once, and a state
that was stored never turns again by a restart alone.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from device_agent.agent.acting.records import Records
from device_agent.agent.acting.watch import Watch, WatchedValues
from device_agent.agent.agent import Agent
from device_agent.agent.parts import Part
from lasp_edge.evaluation.conditions import TriggerState
from lasp_edge.language.acting import Watched
from lasp_edge.language.raising import device_alerts
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import Timer
from lasp_edge.units import SECOND_US

LOOK_US = SECOND_US
"""Microseconds between two looks at the values, at least."""
MOST_WAITING = 16
"""Turns of one alert and key that wait to be called out, at most; the oldest one is given up."""

MOST_CLEARED = 64
"""Keys that are gone of which that is published once more, at most: of the last ones."""

AlertStatus = dict[str, Any]
"""What an alert says, as JSON."""


class Turn(NamedTuple):
    """A turn of an alert that is to be called out.

    Attributes:
        alert, key: which alert, and for which key of its value.
        number: of the turn, from 1.
        status: of the alert since then.
    """

    alert: str
    key: str
    number: int
    status: AlertStatus


class Alerts(Part):
    """The alerts of one device.

    Args:
        agent: what all parts share.
        values_of: gives the values of which what is watched is one.
        records: what is remembered.

    Attributes:
        calls_out: the driver calls turns out, so that they are kept until it has done so.
    """

    name = "alerts"

    def __init__(
        self, agent: Agent, values_of: Callable[[Watched], WatchedValues], records: Records
    ) -> None:
        self._agent, self._records = agent, records
        self.calls_out = agent.settings.calls_out
        self._watches = {
            name: Watch(values_of(watched), watched)
            for name, watched in device_alerts(agent.plan).items()
        }
        self._timer = Timer(LOOK_US)
        self._statuses: dict[tuple[str, str], AlertStatus] = {}
        self._unsent: dict[tuple[str, str], None] = {}
        self._gone: dict[tuple[str, str], bool] = {}  # whether a connection before took that
        self._cleared: dict[tuple[str, str], None] = {}
        self._offered: set[tuple[str, str, int]] = set()
        for name, watch in self._watches.items():
            for key, record in records.of(watch.watched.identity):
                if record.get("gone"):
                    self._gone[name, key] = False
                    continue
                self._statuses[name, key] = record["said"]
                fired = record["said"]["state"] == "on"
                watch.states[key] = TriggerState(fired=fired)

    def connected(self, _now_us: int) -> None:
        self._unsent = dict.fromkeys(self._statuses)
        self._gone |= dict.fromkeys(self._cleared, True)
        self._cleared.clear()

    def succeed(self) -> None:
        self._unsent = dict.fromkeys(self._statuses)

    def tick(self, now_us: int) -> None:
        """Look at what moved, and let the alerts turn that are to."""
        if not self._watches or not self._timer.is_due(now_us):
            return
        for name, watch in self._watches.items():
            for key, has_value in watch.moved():
                try:
                    self._look(name, key, now_us, has_value=has_value)
                except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
                    self._agent.guard.failed(f"alert {name}", error)

    def _look(self, name: str, key: str, now_us: int, *, has_value: bool) -> None:
        watch, clock = self._watches[name], self._agent.clock
        time_us = clock.time_us(now_us)
        trusted_us = time_us if clock.trusted else None
        turned = watch.step(key, has_value=has_value, time_us=trusted_us)
        if turned:
            state = watch.states[key]
            since_us = state.since_us if state.fired else trusted_us
            self._turn(name, key, since_us)
        elif has_value and ((name, key) not in self._statuses or (name, key) in self._gone):
            self._begin(name, key)
        if not has_value and (name, key) in self._statuses:
            self._gone[name, key] = False  # it was off before

    def _begin(self, name: str, key: str) -> None:
        """Publish an alert that is off. It is stored, too: who restarts knows of it if it goes."""
        status, before = self._sentence(name, key, None), self._record(name, key)
        record = {"said": status, "number": before["number"], "waiting": before["waiting"]}
        self._records.put(self._watches[name].watched.identity, key, record)
        self._say(name, key, status)

    def _record(self, name: str, key: str) -> dict[str, Any]:
        identity = self._watches[name].watched.identity
        return self._records.get(identity, key) or {"said": None, "number": 0, "waiting": []}

    def _turn(self, name: str, key: str, since_us: int | None) -> None:
        identity, before = self._watches[name].watched.identity, self._record(name, key)
        status = self._sentence(name, key, since_us)
        number, waiting = before["number"] + 1, list(before["waiting"])
        if self.calls_out:
            waiting.append([number, status])
        if len(waiting) > MOST_WAITING:
            del waiting[0]
            self._agent.guard.say(f"alert {name}: a turn was never called out, too many waited")
        record = {"said": status, "number": number, "waiting": waiting}
        self._records.put(identity, key, record)
        self._say(name, key, status)

    def _sentence(self, name: str, key: str, since_us: int | None) -> AlertStatus:
        """Return the present message of an alert."""
        watch = self._watches[name]
        watched, fired = watch.watched, watch.states[key].fired
        assert watch.trigger is not None, "an alert has a condition"
        value = watch.values.value(watched.variable, key, watched.part)
        device = self._agent.replica.device
        return {
            "alert": name,
            "device": device,
            **({"key": key} if self._is_keyed(name) else {}),
            "state": "on" if fired else "off",
            "fold": watched.variable,
            "part": watched.part,
            "value": value.number,
            **watch.trigger.levels,
            "since": None if since_us is None else _in_text(since_us),
            "inputs": value.inputs,
            "settled": value.settled,
            "devices": list(value.devices),
        }

    def _say(self, name: str, key: str, status: AlertStatus) -> None:
        self._statuses[name, key] = status
        self._unsent[name, key] = None
        self._gone.pop((name, key), None)
        self._cleared.pop((name, key), None)

    def publications(self, now_us: int) -> Iterator[Publication]:  # noqa: ARG002 - the contract
        """Publish new messages of alerts; an empty one where a key is gone."""
        for name, key in list(self._unsent):
            text = json.dumps(self._statuses[name, key], sort_keys=True).encode()
            yield Publication(self._topic(name, key), text, retain=True)
            del self._unsent[name, key]  # the link took it, or else it asked for no more
        for name, key in list(self._gone):
            yield Publication(self._topic(name, key), b"", retain=True)
            self._statuses.pop((name, key), None)
            if self._gone.pop((name, key)):
                self._forget(name, key)
                continue
            record = self._record(name, key) | {"gone": True}
            self._records.put(self._watches[name].watched.identity, key, record)
            self._cleared[name, key] = None
            if len(self._cleared) > MOST_CLEARED:
                oldest = next(iter(self._cleared))
                del self._cleared[oldest]
                self._forget(*oldest)

    def _forget(self, name: str, key: str) -> None:
        """Forget a key that is gone, unless a turn of it is still to be called out."""
        if not self._record(name, key)["waiting"]:
            self._records.put(self._watches[name].watched.identity, key, None)

    def _topic(self, name: str, key: str) -> str:
        device = self._agent.replica.device
        return self._agent.topics.alert(name, device, key if self._is_keyed(name) else None)

    def _is_keyed(self, name: str) -> bool:
        watch = self._watches[name]
        return watch.values.is_keyed(watch.watched.variable)

    def turns(self) -> Iterator[Turn]:
        """Yield the turns that are durable and still to be called out, each once a process.

        It is asked after a commit. Who cannot take a turn stops asking: it is yielded again.
        """
        for name, watch in self._watches.items():
            for key, record in self._records.of(watch.watched.identity):
                for number, status in record["waiting"]:
                    if (name, key, number) not in self._offered:
                        yield Turn(name, key, number, status)
                        self._offered.add((name, key, number))

    def called_out(self, turn: Turn, trouble: str = "") -> None:
        """A turn was called out; or it was given up, and `trouble` says why."""
        if trouble:
            self._agent.guard.say(f"alert {turn.alert}: {trouble}")
        self._offered.discard(turn[:3])
        identity = self._watches[turn.alert].watched.identity
        record = self._records.get(identity, turn.key)
        if record is None:
            return
        waiting = [each for each in record["waiting"] if each[0] != turn.number]
        self._records.put(identity, turn.key, record | {"waiting": waiting})
        at = (turn.alert, turn.key)
        if not any(at in each for each in (self._statuses, self._gone, self._cleared)):
            self._forget(*at)

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (name, key), status in sorted(self._statuses.items()):
            if self._is_keyed(name):
                found.setdefault(name, {"keys": {}})["keys"][key] = status
            else:
                found[name] = status
        return {"alerts": found}


def _in_text(time_us: int) -> str:
    """Return a time as ISO 8601, to the second, in UTC."""
    return datetime.fromtimestamp(time_us // SECOND_US, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
