"""200 devices on a phone, in a real browser: what is wrong stands first, a second costs little."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from device_agent.console.command import watch
from device_agent.console.dashboard.board import Board
from device_agent.console.dashboard.picture import SLOW_S
from device_agent.console.dashboard.server import PageLogin, PageServer
from tests.device_agent.console.dashboard.support_browser import Reader
from tests.device_agent.console.dashboard.support_crowd import Crowd

pytestmark = pytest.mark.slow

PHONE = {"pixels": 390, "height": 844}
COUNT, AWAY = 200, (7, 150, 199)
GONE = [f"pi-{number:03}" for number in AWAY]


@pytest.fixture
def page(driver, monkeypatch):
    """Return the fleet, and somebody who looks at it on a phone."""
    board = Board()
    crowd = Crowd(board, COUNT, AWAY)
    monkeypatch.setattr(watch, "now_s", lambda: crowd.at_s)
    crowd.write()
    server = PageServer(board, 0)
    server.start()
    reader = Reader(driver, server.url)
    reader.width(**PHONE)
    reader.until(lambda: len(rows(reader)) == COUNT)
    yield crowd, reader
    server.stop()


def rows(reader):
    return reader.script(
        "return [...document.querySelectorAll('#devices tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )


def names(reader):
    return [row[0] for row in rows(reader)]


def shown(reader, name, choice):
    Select(reader.driver.find_element(By.ID, name)).select_by_value(choice)


def test_who_is_away_stands_first_and_no_device_is_cut_off(page):
    _, reader = page
    assert (
        reader.text("#state") == "Away: pi-007, pi-150, and pi-199 · 197 of 200 devices connected"
    )
    assert reader.driver.title.startswith("Away: pi-007")
    assert names(reader)[:4] == [*GONE, "pi-000"]
    assert sorted(names(reader)) == [f"pi-{number:03}" for number in range(COUNT)]
    over = "over 200 devices, of which pi-007, pi-150, and pi-199 are away: their last values count"
    assert over in reader.text("#values")


def test_alerts_alarms_and_who_is_away_are_on_the_first_screen_and_colour_the_header(page):
    crowd, reader = page
    colour = "return getComputedStyle(document.querySelector('header')).borderTopColor"
    state = "return document.getElementById('state').dataset.state"
    before = reader.script(colour)
    assert reader.script(state) == "warn"
    for number in (3, 4):
        crowd.alert("too warm", f"pi-{number:03}", "on" if number == 3 else "off")
    crowd.publish("pi-005", alarms=["the disk is almost full"])
    crowd.write()
    reader.until(
        lambda: reader.text("#state").startswith("Alert: too warm · Alarm: pi-005 · Away:")
    )
    assert reader.script(state) == "bad"
    assert reader.script(colour) != before
    ends = reader.script(
        "scrollTo(0, 0); return [...document.querySelectorAll('#attention table')]"
        ".map((each) => [each.innerText, each.getBoundingClientRect().bottom])"
    )
    for words, (text, bottom) in zip(
        ["mean was 28.50 °C", "almost full", "pi-199"], ends, strict=True
    ):
        assert words in text
        assert bottom < PHONE["height"]
    assert names(reader)[:4] == [*GONE, "pi-005"]


def test_devices_are_searched_filtered_and_ordered(page):
    crowd, reader = page
    search = reader.driver.find_element(By.ID, "search")
    search.send_keys("PI-15")
    reader.until(lambda: names(reader) == ["pi-150", *(f"pi-15{n}" for n in range(1, 10))])
    assert "10 of 200 devices" in reader.text("#devices caption")
    search.clear()
    shown(reader, "kind", "away")
    reader.until(lambda: names(reader) == GONE)
    shown(reader, "kind", "all")
    shown(reader, "order", "name")
    reader.until(lambda: names(reader) == crowd.names)
    crowd.publish("pi-042", readings=9)
    crowd.write()
    shown(reader, "order", "readings")
    reader.until(lambda: names(reader)[:2] == ["pi-042", "pi-000"])
    shown(reader, "order", "own")
    reader.until(lambda: names(reader)[0] == "pi-006")


def test_a_second_of_one_device_costs_little_to_send_and_to_draw(page):
    crowd, reader = page
    whole = sum(len(text) for _, text in crowd.board.wait({}, 0))
    seen = {}
    crowd.board.wait(seen, 0)
    reader.script(
        """
        window.changed = new Set();
        new MutationObserver((all) => all.forEach((each) => {
          const row = (each.target.closest ? each.target : each.target.parentElement)
            .closest("#devices tr");
          if (row) changed.add(row.querySelector("th").textContent);
        })).observe(document.body, { subtree: true, childList: true, characterData: true })"""
    )
    crowd.publish("pi-042", readings=7)
    crowd.write()
    changes = [text for _, text in crowd.board.wait(seen, 0)]
    assert sum(map(len, changes)) < 500 < whole / 50
    reader.until(lambda: "7" in rows(reader)[names(reader).index("pi-042")])
    assert reader.script("return [...changed]") == ["pi-042"]
    assert whole < 50_000


def test_a_fleet_that_measures_is_not_amber_and_says_how_old_its_last_agreement_is(page):
    crowd, reader = page
    agreement = "return document.querySelector('.agreement .mark').className"
    crowd.publish("pi-000", settled=True)
    crowd.at_s += 40
    for name in crowd.names[:100]:
        crowd.publish(name, readings=2)
    crowd.write()
    reader.until(lambda: "settled 40 s ago over 200 devices" in reader.text("#values"))
    assert reader.script(agreement) == "mark calm"
    assert "far behind" not in reader.text("#values")
    crowd.at_s += SLOW_S + 1
    crowd.write()
    reader.until(lambda: "far behind pi-100, pi-101, pi-102 and 95 more" in reader.text("#values"))


def test_an_axis_has_its_unit(page):
    _, reader = page
    assert reader.text("#values figure text.axis-unit") == "°C"


def test_a_page_with_a_password_is_live_in_a_browser_that_has_it(driver):
    board = Board()
    server = PageServer(board, 0, login=PageLogin("me", "s3cret"))
    server.start()
    crowd = Crowd(board, 2)
    crowd.write()
    reader = Reader(driver, server.url.replace("//", "//me:s3cret@"))
    reader.until(lambda: reader.text("#state") == "2 of 2 devices connected")
    server.stop()


def test_a_device_may_have_the_name_of_any_property(driver):
    board, odd = Board(), ["__proto__", "constructor", "toString", "7"]
    crowd = Crowd(board, 0, others=odd)
    crowd.write()
    server = PageServer(board, 0)
    server.start()
    reader = Reader(driver, server.url)
    reader.until(lambda: sorted(names(reader)) == sorted(odd))
    crowd.publish("__proto__", readings=5)
    crowd.write()
    reader.until(lambda: "5" in rows(reader)[names(reader).index("__proto__")])
    assert reader.driver.title == "greenhouse · lasp-edge"
    server.stop()
