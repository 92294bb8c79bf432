"""Noting devices that were silent for longer than a fold's `stale_after`, and being noted.

A device judges silence by the time that passes while it is connected itself: one that was cut off
has heard nobody, and says nothing of the others. What the broker retains tells when a device spoke
only if it is new. A device that hears of a note on itself writes its entry again, with a greater
version; so a wrong note, as between two halves of a fleet, is undone by whom it is about.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from crdts import Version
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import Handler, Part
from device_agent.agent.settings import Settings
from device_agent.agent.variables.samples import Samples
from lasp_edge.aggregates.absence import noted
from lasp_edge.language.declarations import LocalFold
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, VariableFrame
from lasp_edge.timers import Timer
from lasp_edge.units import SECOND_US

LOOK_US = SECOND_US
"""Microseconds between two looks at who is silent."""
BEATS_IN_TIME = 4
"""Beats that an idle device sends in the time after which it is left out: three may be lost."""


def spoken_often(settings: Settings, plan: Plan) -> Settings:
    """Return settings under which an idle device speaks often enough for a program's folds."""
    spans_us = [fold.stale_us for fold in plan.dynamic_folds.values() if fold.absence]
    most_us = min(spans_us, default=0) // BEATS_IN_TIME
    if not most_us or settings.keep_alive_us <= most_us:
        return settings
    return replace(settings, keep_alive_us=most_us)


class Absences(Part):
    """Notes absent devices, and undoes notes on this one.

    Args:
        agent: what all parts share.
        samples: the entries, the notes among them.
        is_connected: returns whether there is a connection to the broker.
    """

    name = "absences"

    def __init__(self, agent: Agent, samples: Samples, is_connected: Callable[[], bool]) -> None:
        self._agent, self._samples, self._is_connected = agent, samples, is_connected
        folds = agent.plan.dynamic_folds.values()
        self._watched: dict[str, tuple[LocalFold, int]] = {
            fold.absence.name: (fold.source, fold.stale_us) for fold in folds if fold.absence
        }
        self._timer = Timer(LOOK_US)
        self._listening_us: int | None = None
        self._heard_us: dict[str, int] = {}
        self._versions: dict[tuple[str, str], Version] = {}
        self._stored: dict[str, dict[str, tuple[int, ...]]] = {}
        self.is_changed = False
        for name, notes in (agent.facts.absences or {}).items():
            if name in self._watched:
                for device, version in notes.items():
                    self._note(name, device, Version(*version))
        self.is_changed = False

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        if not self._watched:
            return {}  # whoever comes, and however seldom: nobody is asked for here
        return {BeatFrame: self._hear_beat, VariableFrame: self._hear_entries}

    def _hear_beat(self, frame: BeatFrame, now_us: int) -> None:
        self._heard_us[frame.sender.device] = now_us

    def _hear_entries(self, frame: VariableFrame, now_us: int) -> None:
        where = frame.sender.device, frame.variable
        if frame.version > self._versions.get(where, Version(0, 0, 0)):
            self._versions[where] = frame.version
            self._heard_us[frame.sender.device] = now_us

    def connected(self, now_us: int) -> None:
        self._listening_us = now_us

    def tick(self, now_us: int) -> None:
        """Note devices that were silent for too long, and write changed notes on absent ones."""
        if not self._watched or not self._timer.is_due(now_us):
            return
        if not self._is_connected():
            self._listening_us = None
        elif self._listening_us is None:
            self._listening_us = now_us
        for name, (source, stale_us) in self._watched.items():
            self._look(name, source, stale_us, now_us)

    def _look(self, name: str, source: LocalFold, stale_us: int, now_us: int) -> None:
        me = self._agent.replica.device
        entries, notes = self._samples.published[source.name].entries, self._samples.published[name]
        absent = noted(notes.entries)
        for device in list(self._stored.get(name, ())):
            version = entries.version(device)
            if version is not None and version > Version(*self._stored[name][device]):
                self._take_back(name, device)
        mine = entries.version(me)
        if mine is not None and me in absent and mine <= absent[me]:
            self._samples.published[source.name].write_again()
        if self._listening_us is None:
            return
        for device in entries.devices:
            heard_us = max(self._heard_us.get(device, 0), self._listening_us)
            version = entries.version(device)
            if device == me or version is None or now_us - heard_us <= stale_us:
                continue
            if device not in absent or absent[device] < version:
                self._note(name, device, version)

    def _note(self, name: str, device: str, version: Version) -> None:
        self._samples.published[name].put_own(device, tuple(version))
        self._stored.setdefault(name, {})[device] = tuple(version)
        self.is_changed = True

    def _take_back(self, name: str, device: str) -> None:
        """Let a note go that says nothing any more: the device has written since."""
        self._samples.published[name].put_own(device, None)
        del self._stored[name][device]
        self.is_changed = True

    def take_changes(self) -> Changes | None:
        self.is_changed = False
        stored = {name: dict(notes) for name, notes in self._stored.items()}
        return Changes(facts=Facts(absences=stored))
