"""Home Assistant: this device's values, the fleet's, and how the agent does, as entities.

The messages that announce them are retained, so they are published once a connection, again when
Home Assistant was started, and when an entity has come or gone. The device that speaks for the
fleet announces the fleet's entities, with its own presence as their availability. It also clears
what a retired device had announced, which may never be back to do that.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from zlib import crc32

from crdts import Version
from device_agent.agent.agent import Agent
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.fleet.voice import FleetVoice
from device_agent.agent.parts import Part
from device_agent.outputs.announced import Announced, Components
from device_agent.outputs.discovery import BIRTH, SPREAD_US, Discovery
from device_agent.outputs.retained import Retained
from lasp_edge.language.declarations import AnyFold
from lasp_edge.language.raising import has_keys
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import Timer, is_time

Entity = tuple[str, str, str | None]
"""What an entity shows ("value", "alert", "row"), its name, and its key; None without keys."""


class HomeAssistant(Part):
    """Announces entities to Home Assistant.

    Args:
        agent: what all parts share.
        voice: whether this device speaks for the fleet, and all values.
        commands: which devices are retired.
        rows: returns result and key of each newest row of this device's streams.
    """

    name = "home assistant"

    def __init__(
        self,
        agent: Agent,
        voice: FleetVoice,
        commands: OperatorCommands,
        rows: Callable[[], Iterable[tuple[str, str]]] = tuple,
    ) -> None:
        self._agent, self._voice, self._commands = agent, voice, commands
        self._newest_rows = rows
        self._device, asked = agent.replica.device, agent.settings
        prefix, about = asked.home_assistant, (asked.area, asked.dashboard_url)
        self._birth_topic = f"{prefix}/status"
        self._discovery = found = Discovery(agent.plan, agent.topics, self._device, prefix, *about)
        self._own = Announced(found.topic(self._device), found.message)
        self._fleet = Announced(found.topic(), partial(found.message, of_fleet=True))
        self._timer = Timer(agent.settings.results_us)
        self._retained, self._of_fleet = Retained(), Retained()
        self._cleared: set[str] = set()
        self._members: dict[str, Version] = {}
        self._spoke = False
        self._asked = False
        self._answer_us = self._connected_us = 0
        # No hash of hashlib: imported this late it brings OpenSSL, and 4 MiB with it.
        self._delay_us = crc32(self._device.encode()) % SPREAD_US

    @property
    def listens(self) -> Mapping[str, Callable[[bytes, int], None]]:
        return {
            self._birth_topic: self._hear_birth,
            self._own.topic: self._own.hear,
            self._fleet.topic: self._fleet.hear,
        }

    def _hear_birth(self, payload: bytes, now_us: int) -> None:
        """Announce everything again, a moment after Home Assistant was started."""
        if payload == BIRTH:
            self._asked, self._answer_us = True, now_us + self._delay_us

    def connected(self, now_us: int) -> None:
        self._connected_us = now_us
        self._again()

    def succeed(self) -> None:
        self._again()

    def _again(self) -> None:
        self._retained.again()
        self._of_fleet.again()
        self._timer.restart()

    def unsent(self, publication: Publication) -> None:
        if not publication.pane_frame:
            self._timer.restart()

    def tick(self, now_us: int) -> None:
        if self._asked and is_time(now_us, self._answer_us, SPREAD_US):
            self._asked = False
            self._again()
        if self._voice.speaks and not self._spoke:
            self._again()
        self._spoke = self._voice.speaks

    def publications(self, now_us: int) -> Iterator[Publication]:
        if not self._timer.is_due(now_us):
            return
        if self._members is not self._commands.retired:  # it may have been retired and be back
            self._members = self._commands.retired
            self._retained.again()
        grace_us, retired = self._agent.settings.grace_us, self._members.keys()
        is_all = is_time(now_us, self._connected_us + grace_us, grace_us)
        if self._device not in retired:
            found = tuple(self._entities(of_fleet=False))
            own = self._own.content(found, partial(self._made, found), is_all=is_all)
            yield from self._retained.publications([own])
        if self._voice.speaks:
            found = tuple(self._entities(of_fleet=True))
            fleet = self._fleet.content(found, partial(self._made_of_fleet, found), is_all=is_all)
            yield from self._of_fleet.publications([fleet])
        if self._voice.speaks or self._device in retired:
            yield from self._clear(retired)

    def _clear(self, retired: Set[str]) -> Iterator[Publication]:
        """Clear what retired devices have announced, once."""
        self._cleared &= retired
        for device in sorted(retired - self._cleared):
            yield Publication(self._discovery.topic(device), b"", retain=True)
            self._cleared.add(device)  # the link took it, or else it asked for no more

    def _entities(self, *, of_fleet: bool) -> Iterator[Entity]:
        """Yield the values, alerts and rows of this device, or those of the fleet."""
        plan = self._agent.plan
        folds: Mapping[str, AnyFold] = plan.dynamic_folds if of_fleet else plan.local_folds
        for name, fold in sorted(folds.items()):
            yield from (("value", name, key) for key in self._keys(fold))
        for name, watched in plan.alerts.items():
            if watched.variable in folds:
                keys = self._keys(folds[watched.variable])
                yield from (("alert", name, key) for key in keys)
        if of_fleet:
            return
        for result, key in self._newest_rows():
            yield "row", result, key
            shown = key if has_keys(plan, result) else None
            watching = (name for name, each in plan.alerts.items() if each.variable == result)
            yield from (("alert", name, shown) for name in watching)

    def _keys(self, fold: AnyFold) -> Iterable[str | None]:
        """Return the keys of a value; None for the value of one without keys."""
        return self._voice.values.keys(fold.name) if fold.keyed else [None]

    def _made(self, entities: Iterable[Entity], most_keys: int) -> Components:
        return self._discovery.agent() | self._made_of(entities, most_keys, of_fleet=False)

    def _made_of_fleet(self, entities: Iterable[Entity], most_keys: int) -> Components:
        return self._discovery.fleet() | self._made_of(entities, most_keys, of_fleet=True)

    def _made_of(self, entities: Iterable[Entity], most_keys: int, *, of_fleet: bool) -> Components:
        """Return entities, with a limit of keys for each value, the first in their order."""
        plan, made, count = self._agent.plan, Components(), Counter[tuple[str, str]]()
        for kind, name, key in entities:
            count[kind, name] += 1
            if count[kind, name] > most_keys:
                continue
            if kind == "row":
                made |= self._discovery.row(plan.stream_results[name], key or "")
            elif kind == "alert":
                made |= self._discovery.alert(name, key, of_fleet=of_fleet)
            else:
                fold = plan.local_folds.get(name) or plan.dynamic_folds[name]
                made |= self._discovery.value(fold, key, of_fleet=of_fleet)
        return made
