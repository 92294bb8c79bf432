"""Results for people: every value as JSON on a topic of its own, and how the agent does.

A changed value is published once an interval, retained, so whoever subscribes later has it at once.
A key that is gone is cleared. The topic of the agent itself has its counts of accepted and refused
readings, its alarms and its notices; where only its counts change it is published seldom.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from device_agent.agent.agent import Agent
from device_agent.agent.fleet.programs import Programs
from device_agent.agent.fleet.values import CurrentValue, Result, Values
from device_agent.agent.parts import Part
from device_agent.agent.state.counters import REFUSALS
from device_agent.outputs.retained import Content, Retained
from device_agent.outputs.topic_notes import TopicNotes
from lasp_edge.protocol.publication import Publication
from lasp_edge.release import RELEASE
from lasp_edge.timers import NEVER_US, Timer, is_time
from lasp_edge.units import SECOND_US

MOST_REASONS = 5
"""Reasons of refusals that are published, the most frequent ones; `status` has all."""
COUNTS_US = 60 * SECOND_US
"""Microseconds between two messages in which only counts are new: they cost 200 bytes."""
MOST_ALARMS = 8
"""Alarms that are named, at most; the longest has 200 characters."""
_GROUPS = ("failed: ", "sink: ")


class Results(Part):
    """Publishes the results of one device, where that is asked for.

    Args:
        agent: what all parts share.
        values: of this device.
        programs: those of the other devices.
        notes: the stored topics.
        note_alarms: is given how many alarms are published.

    Attributes:
        sent_bytes: how many bytes the link has sent; None where there is no link.
    """

    name = "results"

    def __init__(
        self,
        agent: Agent,
        values: Values,
        programs: Programs,
        notes: TopicNotes,
        note_alarms: Callable[[int], None],
    ) -> None:
        self._agent, self._programs, self._note_alarms = agent, programs, note_alarms
        self.values = values
        self.sent_bytes: int | None = None
        every_us = agent.settings.results_us
        self._timer = Timer(every_us) if every_us else None
        self._counts = Timer(max(COUNTS_US, every_us))
        self._published: dict[str, Any] = {}
        self._before = dict(agent.counters.totals)
        self._notes, self._retained, self._connected_us = notes, Retained(notes), 0

    def local(self) -> dict[str, dict[str, Result]]:
        """Return target of a local fold -> key -> value."""
        return self.values.local()

    def fleet(self) -> dict[str, dict[str, Result]]:
        """Return target of a dynamic fold -> key -> value."""
        return self.values.fleet()

    def plain(self) -> dict[str, dict[str, Any]]:
        """Return every value as plain data; by key if it has keys."""
        return self.values.plain()

    def connected(self, now_us: int) -> None:
        self._connected_us = now_us
        self.succeed()
        if self._timer:
            self._timer.restart()

    def unsent(self, publication: Publication) -> None:
        """What was left over goes out in the next round."""
        if self._timer and not publication.pane_frame:
            self._timer.restart()

    def succeed(self) -> None:
        """Publish everything again, whether it changed or not."""
        self._retained.again()

    def tick(self, now_us: int) -> None:
        """Note new topics before something is published on them."""
        if self._timer is not None and self._timer.is_over(now_us):
            self._notes.ask(self._coming)

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Publish what changed; an empty text where a key is gone."""
        if self._timer is not None and self._timer.is_due(now_us):
            grace_us = self._agent.settings.grace_us  # by then the others' entries are here
            is_all = is_time(now_us, self._connected_us + grace_us, grace_us)
            yield from self._retained.publications(self._wanted(now_us), is_all=is_all)
            if self._retained.waits:
                self._timer.restart()
        self.due_us = NEVER_US if self._timer is None else self._timer.next_us

    def _coming(self) -> Iterator[str]:
        yield from (self._topic(name, key) for name, key in self.values.names())
        yield self._agent.topics.agent(self._agent.replica.device)

    def _wanted(self, now_us: int) -> Iterator[Content]:
        for value in self.values.current():
            yield Content(self._topic(value.name, value.key), value.mark, partial(as_json, value))
        state = self._of_agent()
        self._note_alarms(len(state["alarms"]))
        alarming = ("clock", "alarms", "notices", "release", "program")
        is_new = any(state.get(name) != self._published.get(name) for name in alarming)
        if is_new or self._counts.is_due(now_us):
            self._published = state
        text = json.dumps(self._published, sort_keys=True)
        yield Content(self._agent.topics.agent(self._agent.replica.device), text, text.encode)

    def _of_agent(self) -> dict[str, Any]:
        totals, clock = self._agent.counters.totals, self._agent.clock
        refused = self._agent.counters.refused
        reasons = sorted(refused, key=lambda reason: (-refused[reason], reason))[:MOST_REASONS]
        counted = {"refused_because": {reason: refused[reason] for reason in reasons}}
        sent = {} if self.sent_bytes is None else {"sent_bytes": self.sent_bytes}
        return {
            **(counted if reasons else {}),
            **sent,
            "readings": totals.get("accepted", 0),
            "refused": sum(totals.get(outcome, 0) for outcome in REFUSALS),
            "clock": "waits" if clock.holds_back else "trusted",
            "alarms": [*self._alarms(), *([clock.trouble] if clock.trouble else [])],
            **(
                {"notices": notices} if (notices := self._agent.notices.texts[:MOST_ALARMS]) else {}
            ),
            "program": self._agent.plan.digest,
            "release": RELEASE,
        }

    def _topic(self, name: str, key: str | None) -> str:
        return self._agent.topics.result(name, self._agent.replica.device, key)

    def report(self) -> dict[str, Any]:
        return {"values": self.plain(), "alarms": self._alarms()}

    def _alarms(self) -> list[str]:
        found = [*self._agent.notices.alarms, *self._programs.alarms][:MOST_ALARMS]
        return found + alarms(self._agent.counters.totals, self._before)


def as_json(value: CurrentValue) -> bytes:
    """Return a value as it is published."""
    return json.dumps(value.plain(), sort_keys=True).encode()


def alarms(totals: Mapping[str, int], before: Mapping[str, int]) -> list[str]:
    """Return the outcomes counted since `before` that somebody should look at, in one line each.

    Counts go on over restarts, so only outcomes since the start are alarms.

    >>> before = {"sink: other store": 1}
    >>> alarms({"failed: fold mean": 3, "accepted": 9, "sink: other store": 1}, before)
    ['failed: fold mean']
    """
    new = sorted(name for name, total in totals.items() if total > before.get(name, 0))
    found = [name for name in new if name.startswith(_GROUPS)]
    more = len(found) - MOST_ALARMS
    return [*found[:MOST_ALARMS], f"and {more} more"] if more > 0 else found
