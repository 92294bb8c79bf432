"""The page in a real browser, with agents at a real broker: what a reader sees, and can reach."""

import argparse
import json
import threading
from random import Random

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from device_agent.console.dashboard import command
from device_agent.console.dashboard.board import Board
from device_agent.console.dashboard.server import PageServer
from lasp_edge.link import BrokerUrl, Link
from lasp_edge.protocol.topics import Topics
from tests.brokers import until_connected, until_true
from tests.device_agent.agent.fleet.test_home_assistant import HOME
from tests.device_agent.agents import greenhouse
from tests.device_agent.console.dashboard.support_browser import Reader
from tests.device_agent.support_linked import LinkedAgents
from tests.lasp_edge.link.support_link import publish_when_possible

pytestmark = [pytest.mark.broker, pytest.mark.slow]

HOSTILE = '<img src=x onerror="document.title=1"><script>alert(1)</script>'
PROGRAM = "lasp_edge.examples.greenhouse:program"
TOPICS = Topics("greenhouse")


class Shown:
    """A dashboard that goes on in a thread."""

    def __init__(self, url):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        words = ["--fleet", "greenhouse", "--broker", url, "--port", "0"]
        self._made = command.dashboard(parser.parse_args(words))
        self.dashboard = self._made.__enter__()
        self.server = self.dashboard.server
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._go_on)
        self._thread.start()

    def _go_on(self):
        while not self._ends.is_set():
            self.dashboard.turn()

    def stop(self):
        self._ends.set()
        self._thread.join()
        self._made.__exit__(None, None, None)


@pytest.fixture(scope="module")
def agents(shared_broker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents")
    made = LinkedAgents(shared_broker.url, folder, greenhouse(), ["attic", HOSTILE], HOME)
    made.start()
    attic, hostile = made.devices
    attic.read([20, 22], tags={"room": "a"})
    hostile.read([24], tags={"room": "k"})
    attic.core.counters.add('refused: no field "<i>tsx</i>"', 3)
    made.play(rounds=16)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def shown(shared_broker, agents):
    made = Shown(shared_broker.url)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def reader(driver, shown):
    made = Reader(driver, shown.server.url)
    made.until(lambda: made.text("#state") == "2 of 2 devices connected")
    made.until(lambda: "settled over 2 devices" in made.text("#values"))
    made.until(lambda: made.text("#devices").count("yes") == 2)
    made.until(lambda: made.driver.find_elements(By.CSS_SELECTOR, "figure.chart svg"))
    return made


def test_values_devices_and_refusals_are_shown(reader):
    assert reader.driver.title == "greenhouse · lasp-edge"
    values = reader.text("#values")
    assert "global_average" in values
    assert "22.00" in values
    assert "settled over 2 devices" in values
    rows = reader.driver.find_elements(By.CSS_SELECTOR, "#devices tbody tr")
    assert sorted(row.text.split()[-6:-1] for row in rows) == [
        ["connected", "21.00", "22.00", "yes", "2"],
        ["connected", "24.00", "22.00", "yes", "1"],
    ]
    reader.driver.find_element(By.CSS_SELECTOR, "#attention summary").click()
    reader.until(lambda: reader.text("#attention details table"))
    assert 'no field "<i>tsx</i>"' in reader.text("#attention")
    assert "lasp-edge dashboard … --lake DIR" in reader.text("#windows")
    assert "No agent reports what it sends" in reader.text("#bytes")


def test_a_hostile_name_is_a_text(reader):
    names = [each.text for each in reader.driver.find_elements(By.CSS_SELECTOR, "#devices th")]
    assert HOSTILE in names
    assert not reader.driver.find_elements(By.CSS_SELECTOR, "main img, main script, main i")
    assert reader.driver.title == "greenhouse · lasp-edge"


def test_the_browser_refuses_whatever_would_make_markup_of_a_text(reader):
    said = reader.script(
        "try { document.body.innerHTML = arguments[0]; return 'done' } catch (e) { return e.name }",
        HOSTILE,
    )
    assert said == "TypeError"


def test_nothing_was_asked_of_another_place_and_nothing_failed(reader):
    asked = reader.script(
        "return performance.getEntriesByType('resource').map((each) => each.name)"
    )
    assert asked
    assert all(each.startswith(reader.url) for each in asked)
    reader.driver.get(reader.url)
    reader.until(lambda: "attic" in reader.text("#devices"))
    reader.driver.get_log("browser")
    reader.driver.refresh()
    reader.until(lambda: "attic" in reader.text("#devices"))
    assert reader.driver.get_log("browser") == []


@pytest.mark.parametrize("pixels", [360, 768, 1280])
def test_no_width_needs_scrolling_sideways(reader, pixels):
    reader.width(pixels)
    for details in reader.driver.find_elements(By.TAG_NAME, "details"):
        reader.script("arguments[0].open = true", details)
    whole, window = reader.script("return [document.documentElement.scrollWidth, innerWidth]")
    assert whole <= window == pixels


def test_on_a_phone_a_row_is_a_card_that_names_its_cells(reader):
    shown = """
        const [row] = document.querySelectorAll("#devices tbody tr");
        const cells = [...row.querySelectorAll("td")];
        return [getComputedStyle(row).display, cells.map((each) =>
          getComputedStyle(each, "::before").content), row.getAttribute("role")]"""
    reader.width(1280)
    assert reader.script(shown) == ["table-row", ["none"] * 6, "row"]
    reader.width(360)
    display, titles, role = reader.script(shown)
    assert (display, role) == ("grid", "row")
    assert titles[:3] == ["none", '"local_average"', '"global_average, here"']


def test_a_reader_with_a_keyboard_reaches_everything_and_sees_where_they_are(reader):
    reader.width(1280)
    reader.script("document.activeElement.blur(); scrollTo(0, 0)")
    reader.driver.get(reader.url)
    reader.until(lambda: reader.driver.find_elements(By.CSS_SELECTOR, "figure.chart svg"))
    wanted = reader.script(
        "return [...document.querySelectorAll('a, summary, input, select')]"
        ".map((each) => each.innerText)"
    )
    reached = []
    for _ in wanted:
        reader.driver.switch_to.active_element.send_keys(Keys.TAB)
        text, outline, width = reader.script(
            "const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.innerText, s.outlineStyle, parseFloat(s.outlineWidth)]"
        )
        reached.append(text)
        assert (outline, width >= 2) == ("solid", True), text
    assert reached == wanted
    assert reached[0] == "Skip to what needs attention"


def test_a_chart_is_a_sentence_and_a_table_that_stay_open_as_values_come(reader, agents):
    (chart,) = reader.driver.find_elements(By.CSS_SELECTOR, "#values figure svg[role=img]")
    assert chart.get_attribute("aria-label").startswith("global_average: 22.00 at ")
    summary = reader.driver.find_element(By.CSS_SELECTOR, "#values summary")
    summary.send_keys(Keys.ENTER)
    agents.devices[0].read([36], tags={"room": "a"})
    agents.play(rounds=8)
    reader.until(lambda: "25.50" in reader.text("#values dd"))
    assert "25.50" in reader.text("#values details table")
    assert reader.script("return document.activeElement === arguments[0]", summary)


def test_landmarks_headings_and_tables_have_their_meaning(reader):
    found = reader.script(
        """
        const all = (what) => [...document.querySelectorAll(what)];
        return {
          landmarks: ["header", "nav", "main", "footer"].map((each) => all(each).length),
          headings: all("h1, h2, h3").map((each) => Number(each.tagName[1])),
          unnamed: all("section").filter((each) =>
            !document.getElementById(each.getAttribute("aria-labelledby"))).length,
          tables: all("table").length,
          captions: all("table > caption").length,
          without: all("th:not([scope])").length,
          live: document.getElementById("state").getAttribute("aria-live"),
          language: document.documentElement.lang,
        }"""
    )
    assert found["landmarks"] == [1, 1, 1, 1]
    assert found["headings"][0] == 1
    steps = zip(found["headings"], found["headings"][1:], strict=False)
    assert all(later <= before + 1 for before, later in steps)
    assert found["tables"] == found["captions"] > 1
    assert (found["unnamed"], found["without"]) == (0, 0)
    assert (found["live"], found["language"]) == ("polite", "en")


CONTRAST = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
  .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
  .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
const behind = (node) => {
  for (let each = node; each; each = each.parentElement) {
    const colour = parse(getComputedStyle(each).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || node.closest("noscript, .skip")) continue;
  const style = getComputedStyle(node);
  const [one, two] = [parse(node.closest("svg") ? style.fill : style.color), behind(node)]
    .map(light).sort((a, b) => b - a);
  found.push([(one + 0.05) / (two + 0.05), walker.currentNode.data]);
}
return found;
"""
"""The contrast of each text with what is behind it, as WCAG 2.2 computes it."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_the_contrast_that_is_needed(reader, scheme):
    reader.prefers(prefers_color_scheme=scheme)
    found = reader.script(CONTRAST)
    assert len(found) > 30
    assert not [each for each in found if each[0] < 4.5]
    paper = reader.script("return getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(246, 247, 245)", "dark": "rgb(18, 23, 22)"}[scheme]
    reader.prefers(prefers_color_scheme="light")


def test_motion_is_left_out_where_it_is_not_wanted(reader):
    moves = "return getComputedStyle(document.documentElement).scrollBehavior"
    assert reader.script(moves) == "smooth"
    reader.prefers(prefers_reduced_motion="reduce")
    assert reader.script(moves) == "auto"
    reader.prefers(prefers_reduced_motion="no-preference")


def test_an_alert_is_shown_once_for_all_devices_that_tell_it(reader, shared_broker):
    link = Link(BrokerUrl.parse(shared_broker.url), client_id="alerts", jitter=Random(1))
    link.start()
    until_connected(link)
    said = {"state": "on", "fold": "global_average", "part": "mean", "value": 28.123456789}
    for device in ("attic", "shed"):
        topic = TOPICS.alert("too warm", device)
        publish_when_possible(link, topic, json.dumps(said | {"since": None}).encode())
    reader.until(lambda: "2 of 2 devices" in reader.text("#attention"))
    assert reader.text("#state") == "Alert: too warm · 2 of 2 devices connected"
    assert "global_average mean was 28.12" in reader.text("#attention")
    for nonsense in (b'{"state": "on", "value": NaN}', b'{"state": 7}', b"[1]", b"\xff"):
        publish_when_possible(link, TOPICS.alert("odd", "attic"), nonsense)
    until_true(lambda: link.in_flight == 0)
    link.stop(0)


def test_for_what_a_gateway_waits_is_shown_while_it_waits(reader, shared_broker):
    link = Link(BrokerUrl.parse(shared_broker.url), client_id="gateway", jitter=Random(1))
    link.start()
    until_connected(link)
    words = "THIS MACHINE'S CLOCK is 9 hours behind those of 2 of 2 devices"
    for waiting in ([words], []):
        told = json.dumps({"online": True, "waiting": waiting}).encode()
        publish_when_possible(link, TOPICS.gateway("site"), told)
        reader.until(lambda some=waiting: (words in reader.text("#attention")) == bool(some))
    until_true(lambda: link.in_flight == 0)
    link.stop(0)


def test_a_server_that_is_gone_is_told_and_comes_back(driver):
    board = Board()
    server = PageServer(board, 0)
    server.start()
    broken = {"connected": False, "url": "mqtt://b", "trouble": "the broker refuses the password"}
    well = broken | {"connected": True, "trouble": None}
    fleet = {
        "fleet": "x",
        "release": "1",
        "count": 0,
        "connected": 0,
        "reporting": 0,
        "devices": {},
        "at": 1,
        "began": 1,
    }
    fleet |= {"values": {}, "alerts": [], "bytes": {"why_not": "-"}, "own": None, "shared": None}
    board.write("fleet", fleet | {"broker": well})
    reader = Reader(driver, server.url)
    reader.until(lambda: "No device of this fleet has sent anything" in reader.text("#state"))
    board.write("fleet", fleet | {"broker": broken})
    reader.until(lambda: "the broker refuses the password" in reader.text("#state"))
    server.stop()
    reader.until(lambda: "server does not answer; what is shown is old" in reader.text("#state"))
    again = Board()
    again.write("fleet", fleet | {"broker": well})
    server = PageServer(again, server.server_port)
    server.start()
    reader.until(lambda: "No device of this fleet has sent anything" in reader.text("#state"))
    server.stop()
