"""The fleet's voice: one device publishes the fleet's values, for all.

Every device knows the fleet's values, and a person wants them in one place. So each device that
publishes for Home Assistant is marked in its presence, and of those that are connected the one
whose name is first publishes on the fleet's topics. When the broker publishes that it is gone the
next one goes on. While devices do not see each other alike, for some seconds, two may publish:
their values differ no more than the devices do, and the later one counts until the next change.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from device_agent.agent.agent import Agent
from device_agent.agent.fleet.agreement import Agreements
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.fleet.results import as_json
from device_agent.agent.fleet.values import Values
from device_agent.agent.parts import Handler, Part
from device_agent.outputs.retained import Content, Retained
from device_agent.outputs.topic_notes import TopicNotes
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import NEVER_US, Timer, is_time
from lasp_edge.units import SECOND_US

WAIT_US = 5 * SECOND_US
"""Microseconds from a connection until a device may speak: by then the broker has delivered who
else is connected."""
MOST_NAMES = 20
"""Devices that are named as away, or as having alarms, at most: the first of them."""
MOST_VOICES = 1_000
"""Other devices of which it is remembered that they would speak: some 100 kB."""


class FleetVoice(Part):
    """Publishes the fleet's values, if this device is the one that does.

    Args:
        agent: what all parts share.
        values: of this device.
        agreements: who else is connected.
        commands: which devices are retired: those do not speak.
        notes: the stored topics of the fleet on which it published.

    Attributes:
        speaks: this is the device that publishes the fleet's values.
        voices: the other devices that would publish them.
    """

    name = "voice"

    def __init__(
        self,
        agent: Agent,
        values: Values,
        agreements: Agreements,
        commands: OperatorCommands,
        notes: TopicNotes,
    ) -> None:
        self._agent, self.values = agent, values
        self._agreements, self._commands = agreements, commands
        self._would = bool(agent.settings.home_assistant)
        self.voices: set[str] = set()
        self._alarming: set[str] = set()
        self._connected_us = 0
        self.speaks = False
        self._timer = Timer(agent.settings.results_us)
        self._notes, self._retained = notes, Retained(notes)

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {PresenceFrame: self._take_presence}

    def _take_presence(self, frame: PresenceFrame, _now_us: int) -> None:
        device = frame.sender.device
        self.voices.discard(device)
        self._alarming.discard(device)
        is_other = device != self._agent.replica.device
        if frame.speaks and is_other and len(self.voices) < MOST_VOICES:
            self.voices.add(device)
        if frame.alarms and len(self._alarming) < MOST_VOICES:
            self._alarming.add(device)

    def connected(self, now_us: int) -> None:
        self._connected_us = now_us
        self._retained.again()

    def unsent(self, publication: Publication) -> None:
        if not publication.pane_frame:
            self._timer.restart()

    def tick(self, now_us: int) -> None:
        """Find out who speaks."""
        if not self._would:
            self.due_us = NEVER_US
            return
        spoke, self.speaks = self.speaks, self._is_first(now_us)
        if self.speaks and not spoke:
            self._retained.again()
            self._timer.restart()
        if self.speaks and self._timer.is_over(now_us):
            self._notes.ask(self._coming)

    def _is_first(self, now_us: int) -> bool:
        if not is_time(now_us, self._connected_us + WAIT_US, WAIT_US):
            return False
        me, retired = self._agent.replica.device, self._commands.retired
        others = self.voices.intersection(self._agreements.others()).difference(retired)
        return me not in retired and me < min(others, default="\U0010ffff")

    def publications(self, now_us: int) -> Iterator[Publication]:
        if self.speaks and self._timer.is_due(now_us):
            grace_us = self._agent.settings.grace_us
            is_all = is_time(now_us, self._connected_us + grace_us, grace_us)
            yield from self._retained.publications(self._wanted(), is_all=is_all)
            if self._retained.waits:
                self._timer.restart()

    def _coming(self) -> Iterator[str]:
        topics, of_fleet = self._agent.topics, self._agent.plan.dynamic_folds
        names = self.values.names()
        yield from (topics.fleet_result(name, key) for name, key in names if name in of_fleet)
        yield topics.fleet_state()

    def _wanted(self) -> Iterator[Content]:
        """Yield what the fleet's topics are to hold."""
        topics, of_fleet = self._agent.topics, self._agent.plan.dynamic_folds
        for value in self.values.current():
            if value.name in of_fleet:
                topic = topics.fleet_result(value.name, value.key)
                yield Content(topic, value.mark, partial(as_json, value))
        text = json.dumps(self._state(), sort_keys=True)
        yield Content(topics.fleet_state(), text, text.encode)

    def _state(self) -> dict[str, Any]:
        """Return who is away and who has alarms."""
        away, me = self._agreements.away(), self._agent.replica.device
        here = {me, *self._agreements.others()}.difference(self._commands.retired)
        return {
            "devices": len(here) + len(away),
            "away": away[:MOST_NAMES],
            "alarms": sorted(here & self._alarming)[:MOST_NAMES],
        }

    def report(self) -> dict[str, Any]:
        return {"speaks": self.speaks}
