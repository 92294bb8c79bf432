"""Rows that may lack readings of a lost store name its device, in a lake as at the gateway."""

from types import SimpleNamespace

import pytest

from cloud_tier.job import frames
from cloud_tier.job.maintenance import compact
from cloud_tier.lake.deletion import forget
from cloud_tier.lake.matching import Wanted
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, folds
from lasp_edge.protocol.status import TENTATIVE
from simulations.oracle import Reading
from tests.cloud_tier.job.support_doors import dies
from tests.cloud_tier.job.test_gateway import check_counted, gateway_rows, lake_rows
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, Device, row, tick
from tests.device_agent.gateway.support_gateway import GatewayUnderTest

pytestmark = pytest.mark.spark

HOUR_US = 3_600 * SECOND_US
NOW_US = BEGIN_US + 2 * HOUR_US


def warm():
    """Return a program with windows side by side, and with others that overlap."""
    program = Program("warm")
    reading = program.event("temperature", resolution="0.01")
    sizes = {"source": reading, "fold": folds.sum()}
    program.window("tens", size_s=10, **sizes)
    program.window("slid", size_s=50, slide_s=20, **sizes)
    return program.plan()


class House:
    """A lake and a gateway, to which the same batches come.

    Attributes:
        terms: of both.
    """

    def __init__(self, spark, root, terms=None):
        self.plan, self._seq, self._ticks = warm(), 0, 0
        self.terms = terms or WaitingTerms(("pi-0", "pi-1"), HOUR_US)
        options = {"roster": self.terms.roster, "dead_after_us": self.terms.dead_after_us}
        self.lake = LakeUnderTest(spark, self.plan, root, **options)
        self.gateway = GatewayUnderTest(self.plan, terms=self.terms)
        self._sensor = Device(self.plan, "pi-0")

    def reads(self, *times_s):
        """Let the device that loses nothing read something; return what lands of it."""
        readings = [
            Reading("pi-0", "temperature", 20, BEGIN_US + at_s * SECOND_US) for at_s in times_s
        ]
        windows = self.plan.windows.values()
        places = [self._sensor._add(each, at) for at in readings for each in windows]
        return [self._sensor._pane(place) for place in places]

    def promises(self, device, low_s, life=1, until_s=None):
        """Return a promise, and from when on no other store had accepted readings."""
        self._seq += 1
        given = {"low_us": BEGIN_US + low_s * SECOND_US, "done": False, "received_us": NOW_US}
        if until_s is not None:
            given["since_us"] = BEGIN_US + until_s * SECOND_US
        return row("promise", device, life, 7, self._seq, **given)

    def batch(self, *rows):
        """Return a batch."""
        self._ticks += 1
        self.last = [*rows, tick(self._ticks, NOW_US)]
        return self.last

    def land(self, *rows):
        """Let rows land in both, and compare them row by row."""
        batch = self.batch(*rows)
        self.gateway.step(batch)
        self.lake.step(batch)
        self.check()

    def check(self):
        assert gateway_rows(self.gateway) == lake_rows(self.lake)
        check_counted(self.lake)

    def restart(self):
        """Begin the processes of both again."""
        self.lake.restart()
        self.gateway.restart()

    def named(self, window="tens"):
        """Return the ends in seconds of the windows whose rows are final and name somebody."""
        return {
            at for at, (_, status, who) in self.names(window).items() if who and status != TENTATIVE
        }

    def names(self, window="tens"):
        """Return end in seconds -> (revision, status, names) of its newest row."""
        newest = {row.at: row for row in self.gateway.rows if row.at.window == window}
        return {
            (row.end_us - BEGIN_US) // SECOND_US: (row.revision, row.status, ",".join(row.excluded))
            for _, row in sorted(newest.items())
        }


@pytest.fixture
def house(spark, tmp_path):
    """Return a house in which pi-1 has promised 100 s; pi-0 has read until 200 s."""
    made = House(spark, tmp_path)
    made.land(made.promises("pi-0", 0), made.promises("pi-1", 100))
    made.land(*made.reads(*range(5, 200, 10)), made.promises("pi-0", 200))
    return made


LOST = "pi-1"


@pytest.mark.parametrize("few", [True, False], ids=["few rows", "many rows"])
def test_windows_in_a_lost_stretch_name_its_device_and_others_do_not(
    house, spark, monkeypatch, few
):
    """The next life promises before it knows that the lost one had more."""
    house.land(house.promises(LOST, 150, life=2))
    assert not house.named()
    compact(spark, house.lake.job, ["1970-01-01"])
    house.restart()
    before = house.names()
    with monkeypatch.context() as patch:
        if not few:
            patch.setattr(frames, "MOST_ROWS", 0)
        house.land(house.promises(LOST, 150, life=2, until_s=135))
    revised = {at: (before[at][0] + 1, "revised", LOST) for at in (110, 120, 130, 140)}
    assert house.names() == {**before, **revised}
    assert house.named("slid") == {110, 130, 150}
    before = house.names()
    house.land(house.promises(LOST, 200, life=2, until_s=135))
    final = {at: (before[at][0] + 1, "final", "") for at in (160, 170, 180, 190, 200)}
    assert house.names() == {**before, **final}, "each is written once"


def test_a_stretch_grows_with_the_next_store_that_is_lost(house, spark):
    house.land(house.promises(LOST, 150, life=2, until_s=130))
    house.land(house.promises(LOST, 200, life=2, until_s=130))
    compact(spark, house.lake.job, ["1970-01-01"])
    before = house.names()
    house.land(house.promises(LOST, 200, life=3, until_s=160))
    compact(spark, house.lake.job, ["1970-01-01"])
    house.restart()
    house.land(house.promises(LOST, 200, life=3, until_s=160), *house.reads(115, 155, 195))
    assert house.named() == {110, 120, 130, 140, 150, 160}
    assert before[120] == (1, "final", LOST)
    assert house.names()[120] == (2, "revised", LOST), "of the reading, and not of the stretch"
    assert house.names()[150][0] == before[150][0] + 1


def test_lives_of_one_batch_count_one_by_one(house):
    """The job was away: what it finds is two lives, of which the first had promised more."""
    batch = [
        house.promises(LOST, 160),
        house.promises(LOST, 180, life=2),
        house.promises(LOST, 180, life=2, until_s=175),
    ]
    for each in batch:
        house.gateway.step([each])
    house.gateway.step(house.batch())
    house.lake.step([*batch, house.last[-1]])
    newest = {(row.at, row.excluded) for row in house.gateway.rows if row.excluded}
    assert {(made[0], made[5]) for made in lake_rows(house.lake) if made[5]} == newest
    assert house.named() == {170, 180}


def test_what_was_final_before_anybody_knew_of_a_device_never_names_it(spark, tmp_path):
    house = House(spark, tmp_path, WaitingTerms(None, HOUR_US))
    house.land(*house.reads(*range(5, 200, 10)), house.promises("pi-0", 100))
    house.land(house.promises("pi-0", 150), house.promises(LOST, 120, until_s=80))
    house.restart()
    house.land(house.promises("pi-0", 150), house.promises(LOST, 120, life=2, until_s=115))
    house.restart()
    house.land(house.promises("pi-0", 200))
    house.land(house.promises(LOST, 200, life=2, until_s=115), *house.reads(55))
    assert house.named() == {60, 110, 120}


def test_a_job_that_dies_with_the_promise_that_states_it_is_made_up_for(house):
    house.land(house.promises(LOST, 150, life=2))
    house.gateway.step(house.batch(house.promises(LOST, 150, life=2, until_s=135)))
    commits = 1
    while dies(SimpleNamespace(lake=house.lake, last=house.last), commits):
        commits += 1
    house.check()
    assert house.names()[140] == (2, "revised", LOST)
    assert commits == 3, "lives, the batch, and the windows: each is done once"


def test_a_lake_of_the_former_release_takes_what_devices_promise_for_what_lives_before_had(
    house, spark
):
    """It has no row of lives, as a gateway of that release has none."""
    table = house.lake.lake.table(house.lake.lake.lattice)
    with house.lake.lake.open_to_changes(house.lake.lake.lattice):
        table.delete("kind = 'lives'")
    house.lake.restart()
    house.land(house.promises(LOST, 150, life=2))
    house.land(house.promises(LOST, 150, life=2, until_s=135))
    assert house.named() == {110, 120, 130, 140}


def test_a_device_that_is_forgotten_has_no_earlier_lives(house):
    house.land(house.promises(LOST, 150, life=2, until_s=135))
    forget(house.lake.lake, Wanted(LOST))
    kinds = {each["device"] for each in house.lake.rows(house.lake.lake.lattice)}
    assert LOST not in kinds
    house.lake.restart()
    assert LOST not in house.lake.known.lives.earlier
    assert not house.lake.known.lives.lost
