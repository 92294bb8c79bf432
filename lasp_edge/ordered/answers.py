"""Answers: what a device has made up to an event in order, as it is sent and read.

An answer names the share that it was made of, and the one that the device goes on from. It leaves
with the life that gives it, and how often that one had promised: a promise of a greater number has
waited for all that was revised with it (`lasp_edge.ordered.gathering`).
"""

from typing import Any, Final, NamedTuple

from lasp_edge.event import Event
from lasp_edge.ordered.deltas import Delta

ANSWER: Final = "a"
WAITS: Final = "w"
"""What stands first in an answer, and in what is given while a device cannot answer yet."""


class PartAnswer(NamedTuple):
    """What a device has made up to an event in order.

    Attributes:
        device: the device.
        basis: of the share that it was made of.
        made: what it has made; () for nothing.
        goes_on: the basis from which the device has gone on; b"" where it waits for the share, or
            where that is always the same.
        incarnation, beats: of the life that has sent it, and how often that one had promised.
    """

    device: str
    basis: bytes
    made: tuple[Any, ...]
    goes_on: bytes = b""
    incarnation: int = 0
    beats: int = 0

    def has_gone_on_from(self, basis: bytes) -> bool:
        """Return whether the device has gone on from the share that counts."""
        return self.goes_on == basis


_FORM: Final = (bytes, tuple, bytes, int, int)
"""The types of what is sent of an answer."""


def part_answer(device: str, value: Any) -> PartAnswer | None:
    """Return what a device has answered; None where that is no answer: it may send anything."""
    if type(value) is not tuple or len(value) != len(_FORM) + 1 or value[0] != ANSWER:
        return None
    if any(type(each) is not form for each, form in zip(value[1:], _FORM, strict=True)):
        return None
    return PartAnswer(device, *value[1:])


def kept_answers(delta: Delta) -> Delta:
    """Return how what leaves a device's half changes: while it waits, its last answer stays."""
    return {
        place: change
        for place, change in delta.items()
        if change[1] is None or change[1].value[0] != WAITS
    }


def sent_answers(delta: Delta, life: tuple[int, int]) -> Delta:
    """Return how answers change as they are sent: by which life, after how many promises of it."""
    return {
        place: (old, new if new is None or new.value[0] != ANSWER else _sent_by(new, life))
        for place, (old, new) in delta.items()
    }


def _sent_by(answer: Event[Any], life: tuple[int, int]) -> Event[Any]:
    return answer._replace(value=(*answer.value, *life))
