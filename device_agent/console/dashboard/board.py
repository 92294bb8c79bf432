"""The subjects of the page, the newest content of each, and the threads that wait for newer ones.

One thread writes, and each open page reads in a thread of its own. A page gets what has changed
since it read last, as a JSON merge patch: so a second of a fleet of 200 devices is some hundred
bytes, and a page that is slow misses what was replaced, never the newest. In such a patch null
takes a name away; so None and a missing name mean the same.

    >>> board = Board()
    >>> board.write("fleet", {"devices": 5, "away": ["attic"]})
    >>> seen = {}
    >>> board.wait(seen, 0)
    [('fleet', '{"devices":5,"away":["attic"]}')]
    >>> board.write("fleet", {"devices": 6})
    >>> board.wait(seen, 0)
    [('fleet', '{"devices":6,"away":null}')]
    >>> board.wait(seen, 0)
    []

Source: P. Hoffman, J. Snell, "JSON Merge Patch", RFC 7396, 2014.
"""

import json
import threading
from typing import Any

Plain = dict[str, Any]


class Board:
    """The newest content of each subject.

    Attributes:
        closed: nothing more will be written.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._newest: dict[str, Plain] = {}
        self._changed = threading.Condition()
        self.closed = False

    def write(self, subject: str, plain: Plain) -> None:
        """Replace a subject's content, if the new one differs.

        Raises:
            ValueError: JSON cannot hold it.
        """
        text = _compact(plain)
        with self._changed:
            if text != self._texts.get(subject):
                self._texts[subject] = text
                self._newest[subject] = json.loads(text)  # ours alone, whoever changes `plain`
                self._changed.notify_all()

    def wait(self, seen: dict[str, Plain], timeout_s: float) -> list[tuple[str, str]]:
        """Return subjects and patches to them since what is in `seen`, and note the newest there.

        Waits for one at most `timeout_s`.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._newer(seen), timeout_s)
            found = self._newer(seen)
        patches = [(name, _compact(patch(seen.get(name, {}), new))) for name, new in found.items()]
        seen |= found
        return patches

    def close(self) -> None:
        """Wake all threads that wait."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _newer(self, seen: dict[str, Plain]) -> dict[str, Plain]:
        return {name: new for name, new in self._newest.items() if new is not seen.get(name)}


def patch(before: Any, after: Any) -> Any:
    """Return what makes the second of the first, by RFC 7396.

    >>> patch({"a": {"n": 1, "m": 2}, "b": [1]}, {"a": {"n": 3}, "b": [1]})
    {'a': {'n': 3, 'm': None}}
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    changed = {
        name: patch(before.get(name), each)
        for name, each in after.items()
        if before.get(name) != each
    }
    return changed | dict.fromkeys(before.keys() - after.keys())


def _compact(plain: Any) -> str:
    return json.dumps(plain, separators=(",", ":"), allow_nan=False)
