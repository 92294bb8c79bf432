"""All parts of one agent, called in their order, each under the guard.

A part that raises is counted with its reason and place, and all others are called as if it had
nothing to say. What it wanted to be durable is not committed; what others want is.
"""

from collections.abc import Callable, Iterator
from typing import Any

from device_agent.changes import Changes
from device_agent.guard import Guard
from device_agent.parts import FrameRefusedError, Handler, Part, Publication
from device_agent.state.counters import Counters
from lasp_edge.protocol.envelope import Frame


class Ensemble:
    """The parts of one agent.

    Args:
        guard: counts what parts raise.
        counters: where refused frames are counted.

    Attributes:
        parts: in the order in which they are called.
        handlers: frame kind -> the parts that take it, each with its handler.
        listeners: topic of another program -> the part that listens to it, and what takes it.
    """

    def __init__(self, guard: Guard, counters: Counters) -> None:
        self._guard, self._counters = guard, counters
        self.parts: list[Part] = []
        self.handlers: dict[type[Frame], list[tuple[Part, Handler]]] = {}
        self.listeners: dict[str, tuple[Part, Callable[[bytes, int], None]]] = {}
        # These are asked at every commit or frame, and most parts have nothing to say to them.
        self._changing: list[Part] = []
        self._remembering: list[Part] = []
        self._refusing: list[Part] = []

    def add(self, *parts: Part) -> None:
        """Add parts behind those that are here."""
        for part in parts:
            self.parts.append(part)
            for kind, handler in part.handlers.items():
                self.handlers.setdefault(kind, []).append((part, handler))
            self.listeners |= {topic: (part, take) for topic, take in part.listens.items()}
            self._changing += [part] if _overrides(part, "take_changes") else []
            self._remembering += [part] if _overrides(part, "committed") else []
            self._refusing += [part] if _overrides(part, "refusal") else []

    def handle(self, frame: Frame, now_us: int) -> None:
        """Give a frame to every part that takes its kind, unless a part refuses it for all."""
        for part in self._refusing:
            reason = self._guard.run(f"{part.name}, refusal", part.refusal, frame, now_us)
            if reason is not None:
                self._counters.note(f"frame: {reason}")
                return
        for part, handler in self.handlers.get(type(frame), ()):
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
        self._guard.run(f"{part.name}, {topic}", take, payload, now_us)
        return True

    def call(self, method: str, *arguments: Any) -> None:
        """Call a method of every part."""
        for part in self.parts:
            try:
                getattr(part, method)(*arguments)
            except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                self._failed(part, method, error)

    def add_changes(self, changes: Changes) -> None:
        """Add what must be durable before anything leaves."""
        for part in self._changing:
            self._add(part, "take_changes", changes)

    def add_notes(self, changes: Changes) -> None:
        """Add what may wait for a commit that comes anyway."""
        for part in self.parts:
            self._add(part, "take_notes", changes)

    def _add(self, part: Part, method: str, changes: Changes) -> None:
        try:
            found = getattr(part, method)()
            if found:
                changes.add(found)
        except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
            self._failed(part, method, error)

    def committed(self) -> None:
        """All that was taken is durable."""
        for part in self._remembering:
            try:
                part.committed()
            except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                self._failed(part, "committed", error)

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield the publications of all parts, of each up to the first that it fails to make.

        A part that is closed is the last.
        """
        for part in self.parts:
            made: Iterator[Publication] | None = None
            while True:
                try:
                    made = part.publications(now_us) if made is None else made
                    publication = next(made)
                except StopIteration:
                    break
                except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
                    self._failed(part, "publications", error)
                    break
                yield publication
            if part.closed:
                return

    def report(self) -> dict[str, Any]:
        """Return what all parts say of themselves."""
        report: dict[str, Any] = {}
        for part in self.parts:
            report |= self._guard.run(f"{part.name}, report", part.report) or {}
        return report

    def _failed(self, part: Part, what: str, error: BaseException) -> None:
        self._guard.failed(f"{part.name}, {what}", error)


def _overrides(part: Part, method: str) -> bool:
    """Return whether a part defines a method of the contract itself."""
    return getattr(type(part), method) is not getattr(Part, method)
