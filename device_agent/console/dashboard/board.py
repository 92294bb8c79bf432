"""The present texts of the page, the newest of each subject, and the threads that wait for newer.

One thread writes, and each open page reads in a thread of its own. A page that is slow misses texts
that were replaced, never the newest one.

    >>> board = Board()
    >>> board.write("fleet", {"devices": 5})
    >>> seen = {}
    >>> [(each.subject, each.text) for each in board.wait(seen, 0)]
    [('fleet', '{"devices":5}')]
    >>> board.wait(seen, 0)
    []
"""

import json
import threading
from typing import Any, NamedTuple


class Sheet(NamedTuple):
    """The text of a subject, as JSON on one line; `number` counts the subject's texts."""

    subject: str
    number: int
    text: str


class Board:
    """The newest sheet of each subject.

    Attributes:
        closed: nothing more will be written.
    """

    def __init__(self) -> None:
        self._sheets: dict[str, Sheet] = {}
        self._changed = threading.Condition()
        self.closed = False

    def write(self, subject: str, plain: Any) -> None:
        """Replace a subject's text, if the new one differs.

        Raises:
            ValueError: JSON cannot hold it.
        """
        text = json.dumps(plain, separators=(",", ":"), allow_nan=False)
        with self._changed:
            before = self._sheets.get(subject, Sheet(subject, 0, ""))
            if text != before.text:
                self._sheets[subject] = Sheet(subject, before.number + 1, text)
                self._changed.notify_all()

    def wait(self, seen: dict[str, int], timeout_s: float) -> list[Sheet]:
        """Return the sheets that are newer than those in `seen`, and note them there.

        Waits for one at most `timeout_s`.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._newer(seen), timeout_s)
            found = self._newer(seen)
        seen.update({sheet.subject: sheet.number for sheet in found})
        return found

    def close(self) -> None:
        """Wake all threads that wait."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _newer(self, seen: dict[str, int]) -> list[Sheet]:
        return [
            sheet for sheet in self._sheets.values() if sheet.number > seen.get(sheet.subject, 0)
        ]
