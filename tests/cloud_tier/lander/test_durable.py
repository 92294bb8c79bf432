"""An acknowledged entry is on the disk: a power cut cannot take it back."""

import os
from pathlib import Path

from tests.cloud_tier.frames import CONNECTED, message
from tests.cloud_tier.lander.test_lander import PROGRAM
from tests.lasp_edge.protocol.support_frames import panes


def test_what_landed_is_on_the_disk_before_a_device_is_told_and_the_log_drops_it(
    station, monkeypatch
):
    synced, answered = [], []
    keep, publish, drop = os.fsync, station.link.publish, station.log.drop
    landing = Path(station.lake.landing)

    def sync(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        keep(descriptor)

    def done(then):
        def act(*words, **options):
            answered.append([path for path in synced if landing in path.parents])
            return then(*words, **options)

        return act

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(station.link, "publish", done(publish))
    monkeypatch.setattr(station.log, "drop", done(drop))
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    station.turn(after_s=1)
    assert station.link.acks()
    data, log = set(landing.glob("*.parquet")), set(landing.glob("_delta_log/*.json"))
    assert data
    assert all(data | log <= set(before) for before in answered)
