"""All parts of one agent, called in their order, each under the guard.

A part that raises is counted with its reason and place, and all others are called as if it had
nothing to say. What it wanted to be durable is not committed; what others want is.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from device_agent.agent.changes import Changes
from device_agent.agent.parts import FrameRefusedError, Handler, Part, StoreKeeper, StoreReader
from device_agent.agent.state.counters import Counters, Guard
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import ALWAYS_US


class PartList:
    """The parts of one agent.

    Args:
        guard: counts what parts raise.
        counters: where refused frames are counted.

    Attributes:
        parts: in the order in which they are called.
        handlers: frame kind -> the parts that take it, each with its handler.
        listeners: topic of another program -> the part that listens to it, and what takes it.
        owes_changes: a part raised when it was asked for its changes: it may have some left.
    """

    def __init__(self, guard: Guard, counters: Counters) -> None:
        self._guard, self._counters = guard, counters
        self.parts: list[Part] = []
        self.handlers: dict[type[Frame], list[tuple[Part, Handler]]] = {}
        self.owes_changes = False
        self._now_us = ALWAYS_US
        self.listeners: dict[str, tuple[Part, Callable[[bytes, int], None]]] = {}
        # Most parts have something to say to few methods of the contract.
        self._with: dict[str, list[Part]] = {name: [] for name in _METHODS}
        self._speaking: list[tuple[Part, bool, bool]] = []

    def add(self, *parts: Part) -> None:
        """Add parts behind those that are here."""
        for part in parts:
            self.parts.append(part)
            for kind, handler in part.handlers.items():
                self.handlers.setdefault(kind, []).append((part, handler))
            self.listeners |= {topic: (part, take) for topic, take in part.listens.items()}
            of: type = type(part)
            speaks, may_close, asked = _overridden(of)
            for name in asked:
                self._with[name].append(part)
            if speaks or may_close:
                self._speaking.append((part, speaks, may_close))

    def handle(self, frame: Frame, now_us: int) -> None:
        """Give a frame to every part that takes its kind, unless a part refuses it for all."""
        for part in self._with["refusal"]:
            try:
                reason = part.refusal(frame, now_us)
            except BaseException as error:  # noqa: BLE001 - no message may end an agent
                self._failed(part, "refusal", error)
                continue
            if reason is not None:
                part.due_us = ALWAYS_US
                self._counters.note(f"frame: {reason}")
                return
        for part, handler in self.handlers.get(type(frame), ()):
            part.due_us, part.has_notes = ALWAYS_US, True  # the handler may state another time
            try:
                handler(frame, now_us)
            except FrameRefusedError as error:
                self._counters.note(f"frame: {error}")
            except BaseException as error:  # noqa: BLE001 - no message may end an agent
                self._failed(part, type(frame).__name__, error)

    def listen(self, topic: str, payload: bytes, now_us: int) -> bool:
        """Give a message to the part that listens to its topic; return whether there is one."""
        if topic not in self.listeners:
            return False
        part, take = self.listeners[topic]
        part.due_us = ALWAYS_US
        self._guard.run(f"{part.name}, {topic}", take, payload, now_us)
        return True

    def call(self, method: str, *arguments: Any) -> None:
        """Call a method of every part that has it."""
        for part in self._with[method]:
            try:
                getattr(part, method)(*arguments)
            except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                self._failed(part, method, error)

    def wake(self) -> None:
        """Let all parts be due."""
        for part in self.parts:
            part.due_us = ALWAYS_US

    def tick(self, now_us: int) -> None:
        """Let the parts that are due do what time alone brings."""
        for part in self._with["tick"]:
            if part.due_us <= now_us:
                try:
                    part.tick(now_us)
                except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                    self._failed(part, "tick", error)

    def is_due(self, now_us: int) -> bool:
        """Return whether a part has something to commit though nothing has changed yet."""
        if now_us < self._now_us:
            self.wake()  # nothing waits for a time of a clock that was ahead
        self._now_us = now_us
        for part in self._with["is_due"]:
            try:
                if part.due_us <= now_us and part.is_due(now_us):
                    return True
            except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                self._failed(part, "is_due", error)
        return False

    def read(self, store: StoreReader, now_us: int) -> None:
        """Let the parts read the store, in their order."""
        for part in self._with["read"]:
            try:
                part.read(store, now_us)
            except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                self._failed(part, "read", error)
                self._guard.run(f"{part.name}, give_up", part.give_up)

    def recall(self, store: StoreKeeper, now_us: int) -> None:
        """Let the parts take back of the store what memory is to look at."""
        self.call("recall", store, now_us)

    def add_changes(self, changes: Changes) -> None:
        """Add what must be durable before anything leaves."""
        self.owes_changes = False
        self._add("take_changes", "is_changed", changes)

    def add_notes(self, changes: Changes) -> None:
        """Add what may wait for a commit that comes anyway."""
        self._add("take_notes", "has_notes", changes)

    def _add(self, method: str, is_asked: str, changes: Changes) -> None:
        """Add what a method gives of each part that is to be asked; it is called at each tick."""
        for part in self._with[method]:
            if not getattr(part, is_asked):
                continue
            try:
                found = getattr(part, method)()
                if found is not None and found:
                    changes.add(found)
            except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                self.owes_changes = True
                self._failed(part, method, error)

    def committed(self) -> None:
        """All that was taken is durable."""
        self.call("committed")

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield the publications of all parts, of each up to the first that it fails to make.

        A part that is closed is the last.
        """
        for part, speaks, may_close in self._speaking:
            made: Iterator[Publication] | None = None
            is_asked = speaks and part.due_us <= now_us
            while is_asked:
                try:
                    made = part.publications(now_us) if made is None else made
                    publication = next(made, None)
                except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                    self._failed(part, "publications", error)
                    break
                if publication is None:
                    break
                yield publication
            if may_close and part.closed:
                return

    def report(self) -> dict[str, Any]:
        """Return the reports of all parts."""
        report: dict[str, Any] = {}
        for part in self.parts:
            report |= self._guard.run(f"{part.name}, report", part.report) or {}
        return report

    def _failed(self, part: Part, what: str, error: BaseException) -> None:
        self._guard.failed(f"{part.name}, {what}", error)


_METHODS = (
    "refusal",
    "connected",
    "unsent",
    "succeed",
    "is_due",
    "read",
    "tick",
    "take_changes",
    "take_notes",
    "committed",
    "recall",
)
"""Methods of the contract that are called in a part only where it overrides them."""


@cache
def _overridden(kind: type) -> tuple[bool, bool, Sequence[str]]:
    """Return whether a class of parts defines `publications`, and `closed`; and which `_METHODS`.

    Each start asks it of all parts; there are few classes.
    """

    def defines(method: str) -> bool:
        return getattr(kind, method) is not getattr(Part, method)

    return defines("publications"), defines("closed"), [each for each in _METHODS if defines(each)]
