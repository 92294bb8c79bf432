"""Alerts of a gateway: on the newest final row of each key, by the times of the rows alone."""

import json

import pytest

from crdts import ControlLog
from device_agent.gateway.alerts import FleetAlerts
from device_agent.gateway.results import FleetResults, Published
from lasp_edge import Column, Fold, Op, Program, folds
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.topics import Topics
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from lasp_edge.units import SECOND_US

MINUTE_US = 60 * SECOND_US
TOPICS = Topics("house")


def house(fold=None, **levels):
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    limit = program.parameter("limit", "25", resolution="0.1")
    window = program.window(
        "minute",
        source=warm,
        fold=fold or folds.mean(),
        size_s=60,
        key=lambda event: event.tags["room"],
    )
    program.alert("hot", window, **(levels or {"above": limit, "hysteresis": 1}))
    if levels:
        program.alert("limited", window, above=limit)
    return program.plan()


def row(minute, number, key="attic", status="final", revision=0):
    """Return the row of a window with one reading; None as its number: it has none any more."""
    count, total = (0, 0) if number is None else (1, round(number * 10))
    at = WindowStart("minute", key, minute * MINUTE_US)
    end_us = at.start_us + MINUTE_US
    return FleetRow(at, end_us, (count, total), count, 1, (), status, revision, end_us, 1)


class House:
    """The alerts of one gateway, and what they remember."""

    def __init__(self, plan, stored="", log=None):
        self.plan, self.log = plan, log or ControlLog()
        self.alerts = FleetAlerts(plan, "site", lambda: self.log, stored)

    def take(self, *rows):
        self.alerts.take(rows, lambda window, _start_us: window.fold)
        return self.states()

    def states(self, name="hot"):
        found = self.alerts.statuses.items()
        return {key: status["state"] for (of, key), status in found if of == name}


def test_an_alert_follows_the_newest_final_row_of_each_key():
    house_ = House(house())
    assert house_.take(row(0, 26), row(0, 20, "hall")) == {"attic": "on", "hall": "off"}
    assert house_.take(row(1, 24.5)) == {"attic": "on", "hall": "off"}, "25 is not passed by 1 yet"
    assert house_.take(row(2, 30, status="tentative"), row(2, 30, "hall", "tentative")) == {
        "attic": "on",
        "hall": "off",
    }
    assert house_.take(row(2, 24))["attic"] == "off"
    assert house_.take(row(1, 90, status="revised", revision=1))["attic"] == "off", "it is older"
    assert house_.take(row(2, 26, status="revised", revision=1))["attic"] == "on"
    assert house_.take(row(2, None, status="revised", revision=2))["attic"] == "off"
    assert house_.alerts.words() == []


def test_rows_of_one_turn_are_taken_in_the_order_of_their_times():
    assert House(house()).take(row(1, 24.5), row(0, 30)) == {"attic": "on"}


def test_a_window_without_readings_is_below_no_level():
    house_ = House(house(folds.count(), below=5))
    assert house_.take(row(0, 1)._replace(partial=(1,)))["attic"] == "on"
    gone = row(0, None, status="revised", revision=1)._replace(partial=(0,))
    assert house_.take(gone)["attic"] == "off"


def test_a_condition_has_to_hold_from_the_end_of_the_first_window_to_that_of_the_newest():
    house_ = House(house(above=20, for_s=120))
    assert house_.take(row(0, 21), row(1, 22))["attic"] == "off"
    assert house_.take(row(2, 23))["attic"] == "on"
    status = house_.alerts.statuses["hot", "attic"]
    assert (status["since"], status["value"]) == ("1970-01-01T00:01:00Z", 23)
    assert house_.alerts.words() == ["ALERT: hot (attic), mean was 23"]


@pytest.mark.parametrize("begun", [1, 2, 3])
def test_a_gateway_that_restarts_goes_on_where_it_was(begun):
    rows = [row(0, 26), row(1, 24.5), row(2, 24.5), row(3, 24)]
    before = House(house())
    before.take(*rows[:begun])
    after = House(house(), before.alerts.remembered())
    assert after.take(*rows[:begun]) == {"attic": "on"}, "the last rows are taken once more"
    assert after.states() == before.states()
    assert after.take(*rows) == {"attic": "off"}
    assert after.alerts.remembered() == "", "what is off is as if it had never been"


def test_what_has_not_held_for_long_enough_is_remembered_too():
    before = House(house(above=20, for_s=120))
    before.take(row(0, 21), row(1, 22))
    after = House(house(above=20, for_s=120), before.alerts.remembered())
    assert after.take(row(2, 23))["attic"] == "on"


def test_a_level_is_that_of_the_windows_end():
    log = ControlLog()
    log |= log.set("limit", "", 3 * MINUTE_US, "30", "ann")
    house_ = House(house(), log=log)
    assert house_.take(row(1, 26)) == {"attic": "on"}
    assert house_.take(row(2, 28)) == {"attic": "off"}, "29 is where it is armed again"
    assert house_.take(row(3, 31)) == {"attic": "on"}


def test_another_condition_takes_nothing_of_what_is_remembered():
    before = House(house())
    before.take(row(0, 26))
    after = House(house(above=10, below=5), before.alerts.remembered())
    assert after.states("hot") == {}
    assert after.take(row(1, 7))["attic"] == "off"


def test_a_fold_that_fails_is_counted_and_named():
    class Broken(Fold):
        name, parts = "broken", ("mean",)
        columns = (Column("count", Op.SUM), Column("total_q", Op.SUM))

        def lift(self, value, time_us=0):
            return (1, value)

        def lower(self, partial, resolution):
            return {"mean": 1 / (partial[1] - 260)}

    house_ = House(house(Broken()))
    assert house_.take(row(0, 26)) == {}
    assert [reason.split(" (")[0] for reason in house_.alerts.failed] == [
        "alert hot: ZeroDivisionError: division by zero"
    ]


def test_an_alert_is_on_its_topic_and_an_entity_of_the_gateway():
    house_ = House(house())
    made = (house_.plan, TOPICS, Published("site", SECOND_US, "homeassistant"))
    results = FleetResults(*made, alerts=house_.alerts)
    rows = [row(0, 26), row(0, 20, "hall")]
    house_.take(*rows)
    results.take(rows, Coverage(MINUTE_US, ("pi",), ()))
    found = {each.topic: each.payload for each in results.publications(10 * SECOND_US)}
    status = json.loads(found[TOPICS.alert("hot", "site", "attic")])
    assert status == {
        "alert": "hot",
        "device": "site",
        "key": "attic",
        "state": "on",
        "fold": "minute",
        "part": "mean",
        "value": 26.0,
        "above": 25.0,
        "below": 24.0,
        "since": "1970-01-01T00:01:00Z",
        "settled": True,
        "devices": 1,
    }
    (announced,) = [payload for topic, payload in found.items() if topic.startswith("homeassist")]
    entities = json.loads(announced)["components"]
    states = {each["state_topic"] for each in entities.values() if each.get("device_class")}
    assert {TOPICS.alert("hot", "site", "attic"), TOPICS.alert("hot", "site", "hall")} <= states
