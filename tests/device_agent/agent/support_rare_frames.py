"""Frames that devices send only where something is wrong, for who fuzzes them."""

from dataclasses import replace

from crdts import Replica
from lasp_edge.protocol.acks import AckFrame, FormerStore
from lasp_edge.protocol.fencing import HelloFrame, ProcessReport, SourceHigh, VouchFrame
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, PresenceFrame
from lasp_edge.protocol.shares import SharesFrame, short_stream
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame, SummaryFrame
from tests.device_agent.agents import NOW_US


def rarely_sent(replica: Replica, about: str, frames: list) -> list:
    """Return frames of the kinds and fields that devices send only where something is wrong."""
    by_kind = {type(frame): frame for frame in frames}
    beat, pane = by_kind[BeatFrame], by_kind[PaneFrame]
    hello = HelloFrame(replica, 1, replica.device, challenge=5, attempt=1)
    highs = (SourceHigh(7, NOW_US, 9),)
    reports = (ProcessReport(replica._replace(nonce=5), highs),)
    begun, units = ((pane.blocks[0].stream, NOW_US),), {"temperature": "°C"}
    shared = [each for each in frames if isinstance(each, SharedFrame)]
    states = [(each.variable, each.stream, each.state) for each in shared]
    return [
        hello,
        VouchFrame.of(Replica(1, 7, about), 1, hello, replica, replica, highs, others=reports),
        *(SummaryFrame(replica, 1, about, *state[:2], b"\x90") for state in states),
        *(RepairFrame(replica, 1, about, *state) for state in states),
        PresenceFrame(
            replica, 3, online=True, speaks=True, units=units, bounds=units, streams=(5,)
        ),
        replace(beat, held_by="mqtt:t", begun=begun, control=9, floor_us=NOW_US),
        replace(pane, begun=begun),
        SharesFrame(replica, 1, short_stream(pane.blocks[0].stream), NOW_US, 3, b"\x90"),
        replace(by_kind[AckFrame], former=(FormerStore("s-0", 4),), control=3),
    ]
