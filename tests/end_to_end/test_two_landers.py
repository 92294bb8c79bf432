"""Two landers divide a fleet's panes; one is killed, and nothing is lost, doubled or held."""

from collections import Counter

import pytest
from deltalake import DeltaTable

from tests.brokers import broker_program
from tests.end_to_end import support_recorded, tables, truth
from tests.end_to_end.support_site import Process, Site, until

pytestmark = [pytest.mark.slow, pytest.mark.broker]
DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]
LINES = 900
LASTS_S = 10.0
LANDED = """
    SELECT device, sum(count) AS count, sum(total_q) AS total FROM (
        SELECT device, row_number() OVER (
            PARTITION BY key, pane_us, device, incarnation, nonce ORDER BY seq DESC) AS newest,
            count, total_q
        FROM w WHERE kind = 'pane' AND stream = {stream})
    WHERE newest = 1 GROUP BY device"""

ROWS = """
    SELECT sum(times) AS landed, count(*) AS different FROM (
        SELECT count(*) AS times FROM w WHERE kind = 'pane'
        GROUP BY stream, key, pane_us, device, incarnation, nonce, seq)"""


class TwoLanders(Site):
    """A site with two landers of one lake, each with a log of its own."""

    def __enter__(self):
        super().__enter__()
        self.pair = [Process(self.folder, f"lander-{name}") for name in ("a", "b")]
        for lander in self.pair:
            self.start_one(lander)
        return self

    def __exit__(self, *error):
        for lander in self.pair:
            lander.end()
        super().__exit__(*error)

    def start_one(self, lander):
        log = ("--log-dir", str(self.folder / f"log of {lander.name}"), "--share", "pair")
        place = ("--lake", str(self.lake), "--broker", self.broker.url)
        lander.run(["lander", self.program, *place, *log])

    def landed_by(self, lander):
        """Return how many segments a lander has landed."""
        name = self.folder / f"log of {lander.name}" / "lander"
        if not name.exists() or not (self.lake / "landing" / "_delta_log").is_dir():
            return 0
        return DeltaTable(self.lake / "landing").transaction_version(name.read_text()) or 0

    def standing(self):
        return "\n".join([super().standing(), *(each.last_words() for each in self.pair)])


def test_two_landers_share_the_panes_and_one_is_killed(tmp_path, lines):
    broker_program("mosquitto")  # the other knows no shared subscriptions
    some = lines[:LINES]
    speed = truth.speed(some, LASTS_S)
    recording = truth.written(tmp_path, some)
    with TwoLanders(tmp_path / "site", recording, DEVICES, *speed) as site:
        killed, stays = site.pair
        until(lambda: all(map(site.landed_by, site.pair)), site.standing)
        site.start_agents()
        both = [site.landed_by(lander) + 2 for lander in site.pair]
        until(
            lambda: all(n <= site.landed_by(it) for n, it in zip(both, site.pair, strict=True)),
            site.standing,
        )
        killed.kill()
        until(site.landed, site.standing)
        assert site.landed_by(stays) > both[1]
        site.start_one(killed)  # what it had logged lands a second time, and counts once
        again = site.landed_by(killed)
        until(lambda: site.landed_by(killed) > again, site.standing)
        assert stays.stop() == killed.stop() == 0
        site.stop()
    check(site.lake, some)


def check(lake, lines):
    """Compare what has landed with the lines."""
    plan = support_recorded.program.plan()
    expected = Counter()
    for reading in truth.readings_of(lines, "temp", truth.WINDOWS["temp_60s"].resolution):
        expected.update({(reading.device, "count"): 1, (reading.device, "total"): reading.steps})
    for name in ("temp_60s", "temp_by_device"):
        query = LANDED.format(stream=plan.windows[name].stream)
        rows = tables.sql(lake, "landing", query)
        found = {(row["device"], of): int(row[of]) for row in rows for of in ("count", "total")}
        assert found == expected
    (rows,) = tables.sql(lake, "landing", ROWS)
    assert rows["landed"] < 1.5 * rows["different"], "they divide the panes"
