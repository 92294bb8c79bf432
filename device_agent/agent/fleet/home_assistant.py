"""Home Assistant: this device's values, the fleet's, and how the agent does, as entities.

The configurations are retained, so they are published once a connection, and again when Home
Assistant was started. A key that is gone loses its entity. The device that speaks for
the fleet announces the fleet's entities, with its own presence as their availability.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any
from zlib import crc32

from device_agent.agent.agent import Agent
from device_agent.agent.fleet.voice import FleetVoice
from device_agent.agent.parts import Part
from device_agent.outputs.discovery import BIRTH, MOST_KEYS, SPREAD_US, Config, Discovery
from device_agent.outputs.retained import Content, Retained
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import Timer, is_time


class HomeAssistant(Part):
    """Announces entities to Home Assistant.

    Args:
        agent: what all parts share.
        voice: whether this device speaks for the fleet, and all values.
        rows: returns result and key of each newest row of this device's streams.
    """

    name = "home assistant"

    def __init__(
        self,
        agent: Agent,
        voice: FleetVoice,
        rows: Callable[[], Iterable[tuple[str, str]]] = tuple,
    ) -> None:
        self._agent = agent
        self._voice, self._newest_rows = voice, rows
        device, prefix = agent.replica.device, agent.settings.home_assistant
        self._birth_topic = f"{prefix}/status"
        self._discovery = Discovery(agent.plan, agent.topics, device, prefix)
        self._timer = Timer(agent.settings.results_us)
        restored = list(voice.values.restored())
        self._own = Retained(self._topics(restored, of_fleet=False))
        self._fleet = Retained(self._topics(restored, of_fleet=True))
        self._spoke = False
        self._asked = False
        self._answer_us = 0
        # No hash of hashlib: imported this late it brings OpenSSL, and 4 MiB with it.
        self._delay_us = crc32(device.encode()) % SPREAD_US

    @property
    def listens(self) -> Mapping[str, Callable[[bytes, int], None]]:
        return {self._birth_topic: self._hear_birth}

    def _hear_birth(self, payload: bytes, now_us: int) -> None:
        """Announce everything again, a moment after Home Assistant was started."""
        if payload == BIRTH:
            self._asked, self._answer_us = True, now_us + self._delay_us

    def connected(self, _now_us: int) -> None:
        self._again()

    def succeed(self) -> None:
        self._again()

    def _again(self) -> None:
        self._own.again()
        self._fleet.again()
        self._timer.restart()

    def unsent(self, publication: Publication) -> None:
        if not publication.pane_frame:
            self._timer.restart()

    def tick(self, now_us: int) -> None:
        if self._asked and is_time(now_us, self._answer_us, SPREAD_US):
            self._asked = False
            self._again()
        if self._voice.speaks and not self._spoke:
            self._fleet.again()
            self._timer.restart()
        self._spoke = self._voice.speaks

    def publications(self, now_us: int) -> Iterator[Publication]:
        if not self._timer.is_due(now_us):
            return
        yield from self._own.publications(self._wanted(of_fleet=False))
        if self._voice.speaks:
            yield from self._fleet.publications(self._wanted(of_fleet=True))

    def _wanted(self, *, of_fleet: bool) -> Iterator[Content]:
        """Yield the configurations of all entities, of this device or of the fleet."""
        made = [] if of_fleet else [self._discovery.agent()]
        made += [
            self._configs(name, key, of_fleet=of_fleet) for name, key in self._entities(of_fleet)
        ]
        made += [] if of_fleet else [*self._alerts(), *self._rows()]
        for topic, config in (each for configs in made for each in configs):
            yield Content(topic, topic, partial(_as_json, config))

    def _alerts(self) -> Iterator[list[tuple[str, Config]]]:
        """Yield the configurations of this device's alerts."""
        for name, watched in self._agent.plan.alerts.items():
            for key in self._keys(watched.variable):
                yield self._discovery.alert(name, key)

    def _rows(self) -> Iterator[list[tuple[str, Config]]]:
        """Yield the configurations of the newest rows of this device's streams."""
        results, count = self._agent.plan.stream_results, Counter[str]()
        for name, key in self._newest_rows():
            count[name] += 1
            if count[name] <= MOST_KEYS:
                yield self._discovery.row(results[name], key)

    def _keys(self, name: str) -> Iterable[str | None]:
        """Return the keys of a value that are entities; None for the value of one without keys."""
        plan = self._agent.plan
        fold = plan.local_folds.get(name) or plan.dynamic_folds[name]
        return islice(self._voice.values.keys(name), MOST_KEYS) if fold.keyed else [None]

    def _entities(self, of_fleet: bool) -> Iterator[tuple[str, str | None]]:  # noqa: FBT001
        """Yield name and key of the values that are entities."""
        plan = self._agent.plan
        folds = {} if of_fleet else dict(plan.local_folds)
        for name in sorted(folds | dict(plan.dynamic_folds)):
            yield from ((name, key) for key in self._keys(name))

    def _topics(self, restored: list[tuple[str, str]], *, of_fleet: bool) -> list[str]:
        """Return where an earlier process may have announced what the store held."""
        of_both = self._agent.plan.dynamic_folds
        return [
            topic
            for name, key in restored
            if name in of_both or not of_fleet
            for topic, _ in self._configs(name, key, of_fleet=of_fleet)
        ]

    def _configs(self, name: str, key: str | None, *, of_fleet: bool) -> list[tuple[str, Config]]:
        plan = self._agent.plan
        fold = plan.local_folds.get(name) or plan.dynamic_folds[name]
        return self._discovery.value(fold, key, of_fleet=of_fleet)


def _as_json(config: dict[str, Any]) -> bytes:
    return json.dumps(config, sort_keys=True, ensure_ascii=False).encode()
