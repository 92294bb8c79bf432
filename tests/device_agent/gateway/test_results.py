"""What a gateway tells people: the newest window that is final, and beside it what is not yet."""

import json
import sys

import pytest

from device_agent.console.view.published import window_of
from device_agent.gateway.results import FleetResults, Published
from lasp_edge import Program, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.topics import Topics
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from lasp_edge.security.access import Role, rules
from lasp_edge.units import SECOND_US
from tests.cloud_tier.support_devices import rooms

PLAN = rooms()
TOPICS = Topics("rooms")
COVERAGE = Coverage(60_000_000, ("attic", "cellar"), ("cellar",))
BY_ROOM = TOPICS.result("by_room", "site 7", "attic")


def row(start_s, total, status="final", revision=0, key="attic", window="by_room"):
    shape = PLAN.windows[window]
    at = WindowStart(window, key, start_s * SECOND_US)
    partial = (2, total) if window == "by_room" else (total,)
    record = (2, 2, ("cellar",), status, revision, None, shape.stream)
    return FleetRow(at, at.start_us + shape.size_us, partial, *record)


@pytest.fixture
def results():
    return FleetResults(PLAN, TOPICS, Published("site 7", 5 * SECOND_US, "homeassistant"))


def topics_of(results, now_us):
    return {topic: payload for topic, payload, *_ in results.publications(now_us)}


def test_the_newest_final_window_stands_there_and_a_later_tentative_one_in_it(results):
    results.take([row(0, 4200, "tentative")], COVERAGE)
    assert json.loads(topics_of(results, 0)[BY_ROOM])["status"] == "tentative"
    results.take([row(0, 4300, revision=1), row(10, 9000, "tentative")], COVERAGE)
    assert topics_of(results, 1) == {}  # not more often than every five seconds
    payload = topics_of(results, 6 * SECOND_US)[BY_ROOM]
    document = window_of(payload)
    assert (document["parts"], document["count"], document["total_q"]) == ({"mean": 21.5}, 2, 4300)
    assert (document["start"], document["end"]) == ("1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z")
    assert (document["devices"], document["expected"], document["except"]) == (2, 2, ["cellar"])
    assert (document["tentative"]["start"], document["tentative"]["parts"]) == (
        "1970-01-01T00:00:10Z",
        {"mean": 45.0},
    )
    results.take([row(10, 9000, revision=1), row(0, 4400, "revised", 2)], COVERAGE)
    document = json.loads(topics_of(results, 12 * SECOND_US)[BY_ROOM])
    assert (document["start"], "tentative" in document) == ("1970-01-01T00:00:10Z", False)
    results.connected()
    assert BY_ROOM in topics_of(results, 13 * SECOND_US)


def test_a_revision_of_the_newest_window_takes_its_place(results):
    results.take([row(10, 9000, revision=1)], COVERAGE)
    assert json.loads(topics_of(results, 0)[BY_ROOM])["revision"] == 1
    results.take([row(10, 9200, "revised", 2)], COVERAGE)
    document = json.loads(topics_of(results, 6 * SECOND_US)[BY_ROOM])
    assert (document["status"], document["parts"]) == ("revised", {"mean": 46.0})


def test_what_the_link_does_not_take_is_told_in_the_next_round(results):
    """The link is full, whichever topic comes next: nothing is left out for good."""
    results.take([row(0, 4200), row(0, 100, key="", window="totals")], COVERAGE)
    told = list[str]()
    for second in range(20):
        for topic, *_ in results.publications(second * SECOND_US):
            if len(told) == second:
                results.unsent()
                break
            told.append(topic)
    assert sorted(told) == sorted({*told})
    assert {BY_ROOM, TOPICS.gateway("site 7")} < {*told}


def test_how_far_it_is_what_failed_and_that_it_vanished_is_told(results):
    results.take([], COVERAGE, {"visits: KeyError: 'house'": 2})
    results.failed["w: ValueError"] += 1
    document = json.loads(topics_of(results, 0)[TOPICS.gateway("site 7")])
    assert document["final_up_to"] == "1970-01-01T00:01:00Z"
    assert (document["online"], document["devices"], document["except"]) == (True, 2, ["cellar"])
    assert document["failed"] == {"visits: KeyError: 'house'": 2, "w: ValueError": 1}
    assert results.will.topic == TOPICS.gateway("site 7")
    assert json.loads(results.will.payload) == {"online": False}
    with pytest.raises(ValueError, match="not a topic of results"):
        TOPICS.result_address(results.will.topic)


def test_home_assistant_finds_each_window_and_hears_all_again_after_its_start(results):
    results.take([row(0, 4200), row(0, 100, key="", window="totals")], COVERAGE)
    found = topics_of(results, 0)
    topic = "homeassistant/device/lasp__rooms/gateway__site_207/config"
    message = json.loads(found[topic])
    config = message["components"]["by_5froom__mean__attic"]
    assert (config["state_topic"], config["unit_of_measurement"]) == (BY_ROOM, "°C")
    assert message["availability"][0]["topic"] == TOPICS.gateway("site 7")
    assert message["device"]["model"] == "gateway of rooms"
    assert message["components"]["totals__sum"]
    gone = {"was__mean": {"platform": "sensor", "name": "was"}}
    before = {"components": gone | message["components"]}
    assert results.hear(topic, json.dumps(before).encode(), SECOND_US)
    components = json.loads(topics_of(results, 6 * SECOND_US)[topic])["components"]
    assert components == message["components"] | {"was__mean": {"platform": "sensor"}}
    assert results.hear(topic, json.dumps({"components": components}).encode(), 7 * SECOND_US)
    assert json.loads(topics_of(results, 12 * SECOND_US)[topic]) == message
    assert topics_of(results, 18 * SECOND_US) == {}
    assert results.hear("homeassistant/status", b"online", 19 * SECOND_US)
    assert not results.hear(BY_ROOM, b"online", 19 * SECOND_US)
    assert topic in topics_of(results, 25 * SECOND_US)


def test_a_lander_of_a_brokers_rules_may_tell_windows_under_its_own_name():
    granted = {str(rule) for rule in rules(Role.LANDER, "site 7", TOPICS, "homeassistant")}
    root = TOPICS.root
    assert f"topic write {root}/out/+/site 7/#" in granted
    announced = "homeassistant/device/lasp__rooms/gateway__site_207/config"
    assert {f"topic write {announced}", f"topic read {announced}"} <= granted
    assert "topic read homeassistant/status" in granted
    assert f"topic write {root}/out/+/#" not in granted


def test_a_tentative_row_says_for_whom_it_waits_and_a_final_one_whom_it_leaves_out(results):
    results.take([row(0, 4300), row(10, 9000, "tentative")], COVERAGE)
    document = window_of(topics_of(results, 0)[BY_ROOM])
    assert (document["except"], document.get("waiting_for")) == (["cellar"], None)
    assert (document["tentative"]["except"], document["tentative"]["waiting_for"]) == (
        [],
        ["cellar"],
    )


def test_a_window_that_is_no_more_is_told_no_longer(results):
    results.take([row(0, 4200), row(10, 4300)], COVERAGE)
    assert json.loads(topics_of(results, 0)[BY_ROOM])["start"] == "1970-01-01T00:00:10Z"
    gone = row(10, 0, "revised", 1)._replace(devices_in=0)
    results.take([gone], COVERAGE)
    assert topics_of(results, 6 * SECOND_US)[BY_ROOM] == b"", "nothing wrong stands there meanwhile"
    results.take([gone, row(0, 4200)], COVERAGE)
    assert (
        json.loads(topics_of(results, 12 * SECOND_US)[BY_ROOM])["start"] == "1970-01-01T00:00:00Z"
    )
    results.take([row(0, 0, "revised", 1)._replace(devices_in=0)], COVERAGE)
    results.take([row(20, 4300, "tentative")], COVERAGE)
    assert json.loads(topics_of(results, 18 * SECOND_US)[BY_ROOM])["status"] == "tentative"


def test_what_the_run_before_told_of_a_key_is_taken_back_where_no_row_of_it_is_left(results):
    gone = row(10, 0, "revised", 1)._replace(devices_in=0)
    results.take([gone, row(0, 4300, key="cellar")], COVERAGE)
    told = topics_of(results, 0)
    assert told[BY_ROOM] == b""
    assert told[TOPICS.result("by_room", "site 7", "cellar")]
    (announced,) = [json.loads(told[topic]) for topic in told if topic.startswith("homeassistant")]
    found = [name for name in announced["components"] if name.startswith("by_5froom__mean")]
    assert found == ["by_5froom__mean__cellar"]


@pytest.mark.parametrize(
    "gives",
    [b"\xff", 10**5_000, float("nan"), None, sys.exit],
    ids=["bytes", "an unprintable integer", "nan", "None", "exit"],
)
def test_a_fold_of_the_users_own_that_gives_no_value_keeps_no_other_from_being_told(gives):
    class Strange(Fold):
        name, parts = "strange", ("x",)
        columns = (Column("n", Op.SUM),)

        def lift(self, value, time_us=0):
            return (1,)

        def lower(self, partial, resolution):
            if partial[0] < 2:
                return {"x": 0}
            return {"x": gives} if gives is not sys.exit else sys.exit(7)

    program = Program("strange")
    event = program.event("temperature")
    program.window("own", source=event, fold=Strange(), size_s=60)
    program.window("sound", source=event, fold=folds.count(), size_s=60)
    plan = program.plan()
    topics = Topics("strange")
    results = FleetResults(plan, topics, Published("g", SECOND_US))
    for window in plan.windows.values():
        at = WindowStart(window.name, "", 0)
        record = (1, 1, (), "final", 0, None, window.stream)
        results.take([FleetRow(at, window.size_us, (2,), *record)], COVERAGE)
    document = {
        topic: json.loads(payload, parse_constant=pytest.fail)
        for topic, payload in topics_of(results, 0).items()
    }
    assert document[topics.result("sound", "g", None)]["parts"] == {"count": 2}
    own = document[topics.result("own", "g", None)]
    assert (own["parts"], own["n"]) == ({} if gives is not None else {"x": None}, 2)
    assert len(results.failed) == (gives is not None)
    assert all(reason.startswith("own: ") for reason in results.failed)
