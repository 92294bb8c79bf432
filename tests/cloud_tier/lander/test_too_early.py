"""Acknowledging too early, planted: a fast test sees it, and sees that the real lander does not.

The broker may forget a message once it is synced in the log, and a device an entry once it is in
the lake. Both are looked up on the disk at the moment of the answer.
"""

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cloud_tier.lander.process import Lander
from lasp_edge.link import Message
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.kinds import decode
from tests.cloud_tier import frames as support
from tests.cloud_tier.frames import CONNECTED, FakeLink, Station, message
from tests.cloud_tier.lander.test_lander import PROGRAM
from tests.lasp_edge.protocol.support_frames import panes


class AcknowledgesBeforeTheSync(Lander):
    """Planted: the broker forgets what a crash may still take from the log."""

    def _take(self, events):
        for event in events:
            if isinstance(event, Message):
                self._link.acknowledge(event)
        super()._take(events)


class AnswersBeforeTheCommit(Lander):
    """Planted: the device forgets what a crash may still keep out of the lake."""

    def _land(self, segment):
        accepted = self._acceptance.take(segment.records)
        self._replies.owe(accepted, self._clock.now_us)
        self._replies.answer(self._publish, self._clock.now_us)
        super()._land(segment)


class TooEarlyError(AssertionError):
    """An acknowledged entry is not on the disk."""


class DoubtingLink(FakeLink):
    """A link that looks on the disk before it believes an acknowledgement."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.synced = {}

    def acknowledge(self, message):
        if not any(message.payload in text for text in self.synced.values()):
            raise TooEarlyError(message.topic)
        super().acknowledge(message)

    def publish(self, topic, payload, **options):
        frame = decode(payload)
        if isinstance(frame, AckFrame):
            rows = DeltaTable(self.folder / "lake" / "landing").to_pyarrow_table().to_pylist()
            there = {(row["incarnation"], row["nonce"], row["seq"]) for row in rows}
            acknowledged = {
                (incarnation, nonce, seq)
                for incarnation, nonce, runs in frame.taken
                for first, last in runs
                for seq in range(first, last + 1)
            }
            if not acknowledged <= there:
                raise TooEarlyError(topic)
        return super().publish(topic, payload, **options)


def lands(lander, folder, monkeypatch):
    """Have a lander take two messages in and land them, over a link that doubts it."""
    link = DoubtingLink(folder)
    right = os.fsync

    def fsync(descriptor):
        right(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_file():
            link.synced[path] = path.read_bytes()

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(support, "Lander", lander)
    monkeypatch.setattr(support, "FakeLink", lambda: link)
    station = Station(folder, PROGRAM)
    try:
        station.turn(CONNECTED, message(panes(PROGRAM, 4)), message(panes(PROGRAM, 5, first_seq=3)))
        station.turn(after_s=1)
    finally:
        station.log.release()
    return station


def test_lander_tells_nobody_before_it_is_on_the_disk(tmp_path, monkeypatch):
    station = lands(Lander, tmp_path, monkeypatch)
    assert len(station.link.acknowledged) == 2
    assert sum(map(len, station.link.acks()["pi-0"].values())) == 4


@pytest.mark.parametrize("planted", [AcknowledgesBeforeTheSync, AnswersBeforeTheCommit])
def test_planted_early_acknowledgement_is_seen(planted, tmp_path, monkeypatch):
    with pytest.raises(TooEarlyError):
        lands(planted, tmp_path, monkeypatch)
