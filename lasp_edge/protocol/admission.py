"""Admission: which well-formed frames a reader refuses, and why.

These rules look at a frame and at what the reader knows already. Devices, landers, operators and
simulations apply the same ones, so they refuse the same frames. What only a lander can judge, such
as the streams of its program, is in `lasp_edge.protocol.acceptance`.

    >>> from crdts import Replica
    >>> from lasp_edge.protocol.frames import AskFrame
    >>> sender_refusal(AskFrame(Replica(2_000, 5, "attic"), 1, "pi-1", ""), Known(3))
    'incarnation too far ahead'
"""

from typing import Final, NamedTuple

from crdts import Membership
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.limits import INCARNATIONS_AHEAD, INCARNATIONS_BELIEVED

TOO_MANY_DEVICES: Final = "too many devices"
FIRST_CONTACT_HELD: Final = "first contact with an incarnation too far ahead"
TOO_FAR_AHEAD: Final = "incarnation too far ahead"
HELD: Final = frozenset({FIRST_CONTACT_HELD, TOO_FAR_AHEAD})
"""Reasons for which a life is held back: it is taken where it goes on to speak."""


class Known(NamedTuple):
    """What a reader knows before it takes a frame.

    Attributes:
        incarnation: the greatest known of the device that the frame concerns; None: unknown device.
        waited: the life was held back long enough, and nobody has contradicted it.
        full: no further device can be known.
    """

    incarnation: int | None = None
    waited: bool = False
    full: bool = False


def is_too_far_ahead(incarnation: int, known: int | None) -> bool:
    """Return whether no device can have started this often since `known` was its incarnation."""
    return known is not None and incarnation - known > INCARNATIONS_AHEAD


def nothing_refused(frame: Frame, known: Known) -> None:
    """Refuse no frame of a kind."""
    del frame, known


def sender_refusal(frame: Frame, known: Known) -> str | None:
    """Return why a frame in which a device speaks of itself is refused; None if it is not.

    An incarnation that a device cannot have reached since it was heard, or that a young one cannot
    have, is held back for a while (`lasp_edge.protocol.witness`): it may have started that often
    where nobody listened, or have become later than a life that a stranger invented.
    """
    is_unknown, incarnation = known.incarnation is None, frame.sender.incarnation
    if is_unknown and known.full:
        return TOO_MANY_DEVICES
    if not is_too_far_ahead(incarnation, known.incarnation or 0):
        return None
    if known.waited and incarnation < INCARNATIONS_BELIEVED:
        return None
    return FIRST_CONTACT_HELD if is_unknown else TOO_FAR_AHEAD


def counts(block: PaneEntries, device: str, membership: Membership) -> list[bool]:
    """Return which pane entries of a block count for ever.

    All entries of a device count, and of one that is retired those up to its version. This is
    `Membership.admits` by column.
    """
    member = membership.entries.get(device)
    if member is None or not member.retired:
        return [True] * len(block.seqs)
    return [(block.incarnation, block.nonce, seq) <= member.version for seq in block.seqs]
