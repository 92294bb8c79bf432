"""Everything is killed at random moments of a replay, and the result is the same."""

from collections import Counter

import pytest

from tests.brokers import broker_program
from tests.end_to_end import support_recorded, tables, truth
from tests.end_to_end.accidents import AGENTS, BROKERS, LANDERS, Trial, drawn
from tests.end_to_end.support_site import Site

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]
LINES = 4_500
LASTS_S = 45.0
SEED = 1


def test_killed_at_random_moments_gives_the_same_result(tmp_path, lines):
    broker_program("mosquitto")  # the other forgets too much to heal in time
    some = lines[:LINES]
    speed = truth.speed(some, LASTS_S)
    accidents = drawn(SEED, DEVICES, LASTS_S)
    print(f"seed {SEED}:", *accidents, sep="\n")
    with Site(tmp_path / "site", truth.written(tmp_path, some), DEVICES, *speed) as site:
        trial = Trial(site, accidents)
        trial.run()
        reports = site.reports()
        site.stop()
    print("what happened:", *trial.done, f"the job ended with {trial.ended}", sep="\n")
    assert not tables.wrong(site.lake, some)
    assert not wrong_values(site, reports, truth.last(some, support_recorded.LAST))

    killed = Counter(name.split()[0] for _, name in trial.done)
    assert [killed[kind] for kind in ("agent", "broker", "lander")] == [AGENTS, BROKERS, LANDERS]
    assert [killed[way] for way in ("cloud", "job", "jvm")] == [1, 1, 1]
    assert sum(trial.ended) == killed["jvm"], "the job says so where Spark alone was killed"
    assert not any("Traceback" in agent.last_words() for agent in site.agents.values())


def wrong_values(site, reports, last):
    """Return which fleet-wide or own values are not those of the last readings."""
    value = tables.fleet_value(site.lake, "last_everywhere")
    found = {} if int(value["total_q"]) == sum(s.total for s in last.values()) else {"lake": value}
    for device, report in reports.items():
        here, everywhere = (report["values"][name] for name in ("last_here", "last_everywhere"))
        if here["total_q"] != last[device].total or everywhere["inputs"] != value["inputs"]:
            found[device] = report["values"]
    return found
