"""Notices: sentences about what the agent accepts, and is probably a mistake.

Nothing is refused for them. A notice holds for as long as its reason does: it is in the agent's
line, on the topic of the agent's state, and in its store, where `status` and `doctor` read it. One
that is an alarm is a problem in Home Assistant, too.

    >>> notices = Notices()
    >>> notices.begin("source mqtt:t", "nothing came from mqtt:t")
    >>> notices.alarm("clone", CLONED, now_us=0, lasts_us=5 * SECOND_US)
    >>> notices.tick(6 * SECOND_US)
    >>> notices.texts, notices.alarms
    (['nothing came from mqtt:t'], [])
    >>> notices.end("source mqtt:t")
    >>> notices.texts
    []
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import Part
from lasp_edge.timers import ALWAYS_US, NEVER_US, is_time
from lasp_edge.units import SECOND_US

MOST_NOTICES = 32
"""Notices at one time, at most; what comes after them is left out until one ends."""
MOST_KEYS = 1_000
"""Keys of which the spelling is remembered, at most: more than a device reads."""
TWIN: Final = "another live agent has this name"
CLONED: Final = f"{TWIN}: give one of the two another --device"
CLONED_BY: Final = f"{TWIN}, as {{}}: give one of the two another --device"
CLONED_US = 600 * SECOND_US
"""Microseconds after the last message of a clone in which there may be one: it sends a beat each
four minutes at least."""


class Notice(NamedTuple):
    """A sentence that holds now.

    Attributes:
        is_alarm: it is a problem for sure.
        until_us, lasts_us: when it ends, and how long it holds; 0: something ends it.
    """

    text: str
    is_alarm: bool = False
    until_us: int = 0
    lasts_us: int = 0


class Notices(Part):
    """The present notices of one agent.

    Args:
        stored: what the store holds of them.
    """

    name = "notices"

    def __init__(self, stored: Iterable[str] = ()) -> None:
        self._held: dict[str, Notice] = {}
        self._stored = list(stored)
        self._spellings: dict[tuple[str, str], str] = {}
        self.due_us, self.has_notes = NEVER_US, bool(self._stored)

    @property
    def texts(self) -> list[str]:
        """The notices that are no alarms, the oldest first."""
        return [notice.text for notice in self._held.values() if not notice.is_alarm]

    @property
    def alarms(self) -> list[str]:
        """The notices that are alarms."""
        return [notice.text for notice in self._held.values() if notice.is_alarm]

    def begin(self, reason: str, text: str, *, now_us: int = 0, lasts_us: int = 0) -> None:
        """Note a sentence until its reason ends, or for a time; one of that reason is replaced."""
        self._put(reason, Notice(text, until_us=now_us + lasts_us, lasts_us=lasts_us))

    def alarm(self, reason: str, text: str, *, now_us: int, lasts_us: int) -> None:
        """Raise an alarm that ends by itself unless it is raised again."""
        self._put(reason, Notice(text, True, now_us + lasts_us, lasts_us))  # noqa: FBT003

    def shorten(self, reason: str, *, now_us: int, lasts_us: int) -> None:
        """Let an alarm end sooner, if it is raised: its reason seems to be over."""
        notice = self._held.get(reason)
        if notice is not None and notice.is_alarm:
            until_us = min(notice.until_us, now_us + lasts_us)
            self._held[reason] = notice._replace(until_us=until_us)

    def _put(self, reason: str, notice: Notice) -> None:
        if reason in self._held or len(self._held) < MOST_NOTICES:
            self._held[reason] = notice
            self._schedule()
            self.has_notes = True

    def end(self, reason: str) -> None:
        """Let the notice of a reason be over, if there is one."""
        if self._held.pop(reason, None) is not None:
            self._schedule()
            self.has_notes = True

    def _schedule(self) -> None:
        """Be due where something ends by time."""
        lasting = any(notice.lasts_us for notice in self._held.values())
        self.due_us = ALWAYS_US if lasting else NEVER_US

    def look_at_key(self, owner: str, key: str) -> None:
        """Note two keys of one window or variable that differ by case or blanks alone.

        They stay two keys: nobody but their author knows whether they are one.
        """
        plain = owner, "".join(key.split()).casefold()
        other = self._spellings.get(plain)
        if other is None:
            if len(self._spellings) < MOST_KEYS:
                self._spellings[plain] = key
        elif other != key:
            text = f"{owner} has the keys {other!r} and {key!r}, which differ by case or blanks"
            self.begin(f"key {plain}", f"{text} alone: each counts by itself")

    def tick(self, now_us: int) -> None:
        for reason, notice in list(self._held.items()):
            if notice.lasts_us and is_time(now_us, notice.until_us, notice.lasts_us):
                self.end(reason)
        self._schedule()

    def take_notes(self) -> Changes | None:
        texts, self.has_notes = self.alarms + self.texts, False
        if texts == self._stored:
            return None
        self._stored = texts
        return Changes(facts=Facts(notices=texts))

    def report(self) -> dict[str, list[str]]:
        return {"notices": self.texts}
