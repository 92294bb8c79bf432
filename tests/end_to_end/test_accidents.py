"""Everything is killed at random moments of a replay, and the result is the same."""

from collections import Counter

import pytest

from tests.end_to_end import programs, tables, truth
from tests.end_to_end.accidents import AGENTS, BROKERS, LANDERS, Trial, drawn
from tests.end_to_end.processes import Site

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
LINES = 5_500
LASTS_S = 40.0


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_random_moments_gives_the_same_result(seed, tmp_path, lines):
    some = lines[:LINES]
    speed = truth.lasts_s(some) / LASTS_S
    path = tmp_path / "some.jsonl"
    path.write_text("".join(some), encoding="utf-8")
    devices = ["iot-device-01", "iot-device-02", "iot-device-03"]
    accidents = drawn(seed, devices, LASTS_S)
    print(f"again: pytest {__file__} -k '{seed}'; seed {seed}:", *accidents, sep="\n")
    with Site(tmp_path / "site", path, devices, "--speed", f"{speed:.3f}") as site:
        trial = Trial(site, accidents)
        trial.run()
        reports = site.reports()
        site.stop()
    print("what happened:", *trial.done, "the job ended with", trial.ended, sep="\n")
    killed = Counter(name.split()[0] for _, name in trial.done)
    assert [killed[kind] for kind in ("agent", "broker", "lander")] == [AGENTS, BROKERS, LANDERS]
    assert killed["cloud"] + killed["job"] + killed["jvm"] == 2

    for name in truth.WINDOWS:
        expected = tables.expected(truth.windows(some, name), name)
        assert not tables.difference(tables.held(site.lake, name), expected)
        assert not tables.difference(tables.read_independently(site.lake, name), expected)
        assert not tables.broken_histories(site.lake, name)
    last = truth.last(some, programs.LAST)
    value = tables.fleet_value(site.lake, "last_everywhere")
    assert int(value["total_q"]) == sum(each.total for each in last.values())
    for device, report in reports.items():
        assert report["values"]["last_here"]["total_q"] == last[device].total
        assert report["values"]["last_everywhere"]["inputs"] == value["inputs"]
