"""What a sink has been asked: the entries that came to it, until it has answered for each."""

from collections.abc import Iterable, Iterator

from crdts import Replica
from device_agent.agent.stored_rows import EntryKey
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from simulations.world.decoding import decoded

PANES = f"/{FRAME_KINDS[PaneFrame.kind].topic}/"
"""Stands in the topics of panes."""


class Questions:
    """The frames of panes that came to a sink, and the entries in them without an answer.

    Attributes:
        turns: the life that sent a frame, and its number -> in how many turns it was not answered.
    """

    def __init__(self) -> None:
        self.turns: dict[tuple[Replica, int], int] = {}
        self._open: dict[tuple[Replica, int], set[EntryKey]] = {}

    def hear(self, topic: str, payload: bytes) -> None:
        """Note a message, if it is a frame of panes."""
        if PANES not in topic:
            return
        try:
            frame = decoded(payload)
        except FrameError:
            return
        if isinstance(frame, PaneFrame):
            at = frame.sender, frame.number
            self._open[at], self.turns[at] = set(entries_of(frame)), 0

    def answer(self, answers: Iterable[AckFrame], *, is_whole: bool) -> None:
        """Note what left in a turn.

        Args:
            answers: that.
            is_whole: neither the process nor its connection ended: what came was lost with these.
        """
        if not is_whole:
            self.turns.clear()
            self._open.clear()
            return
        answered: dict[str, set[EntryKey]] = {}
        for each in answers:
            answered.setdefault(each.about, set()).update(answered_by(each))
        for at, entries in list(self._open.items()):
            entries.difference_update(answered.get(at[0].device, ()))
            self.turns[at] += 1
            if not entries:
                del self._open[at], self.turns[at]


def entries_of(frame: PaneFrame) -> Iterator[EntryKey]:
    """Yield the entries of a frame."""
    for block in frame.blocks:
        for seq in block.seqs:
            yield EntryKey(block.incarnation, block.nonce, seq)


def answered_by(answer: AckFrame) -> set[EntryKey]:
    """Return the entries for which a frame answers."""
    every = [*answer.taken, *(seqs for _, seqs in answer.not_taken)]
    return {
        EntryKey(incarnation, nonce, seq)
        for incarnation, nonce, runs in every
        for first, last in runs
        for seq in range(first, last + 1)
    }
