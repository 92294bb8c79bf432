"""What a lander does with shared variables: news lands once, what is lost is asked for."""

import pytest
from deltalake import DeltaTable

from cloud_tier.lake.lake import Lake
from crdts import Counter, ORMap, ORSet, Replica, encode
from crdts.tally import tally
from lasp_edge import Program
from lasp_edge.errors import Exit
from lasp_edge.protocol.frames import BeatFrame, VariableReport
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame, SummaryFrame
from lasp_edge.tool.command_line import main
from tests.cloud_tier.frames import CONNECTED, Station, message

BEGIN_US = 1_735_689_600_000_000
KITCHEN, CELLAR = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")


def house():
    program = Program("rooms")
    program.event("door")
    program.declare(ORSet(), "doors")
    program.declare(ORMap(Counter()), "opened")
    return program.plan()


PLAN = house()


class Listener(Station):
    """A station that hears of shared variables."""

    def lands(self, *frames):
        self.turn(CONNECTED, *map(message, frames), after_s=1)
        self.turn(after_s=1)

    def shared_rows(self):
        return DeltaTable(self.lake.shared).to_pyarrow_table().num_rows

    def asks(self):
        frames = [decode(payload) for _, payload in self.link.published]
        return [frame for frame in frames if isinstance(frame, SummaryFrame)]


@pytest.fixture
def station(tmp_path):
    made = Listener(tmp_path, PLAN)
    yield made
    made.log.release()


def slot(state, name="doors", sender=KITCHEN, number=1):
    stream = PLAN.shared_streams[name]
    return SharedFrame(sender, number, name, stream, 0, encode(state))


def doors(*names):
    state = ORSet()
    for name in names:
        state |= state.add(KITCHEN, name)
    return state


def test_a_slot_lands_as_what_is_news_in_it(station):
    station.lands(slot(doors("front")))
    station.lands(slot(doors("front", "back"), number=2))
    assert station.shared_rows() == 2
    assert Lake(station.lake.root).shared("doors").value == {"front", "back"}


def test_a_lander_that_starts_again_knows_what_has_landed(station):
    station.lands(slot(doors("front", "back")))
    station.start()
    station.lands(slot(doors("front", "back")))
    assert station.shared_rows() == 2


def test_a_commit_before_a_crash_is_not_done_again(station, monkeypatch):
    original = station.landing._write

    def killed_between(table, rows, number):
        if table is station.landing._landing:
            raise KeyboardInterrupt
        original(table, rows, number)

    monkeypatch.setattr(station.landing, "_write", killed_between)
    with pytest.raises(KeyboardInterrupt):
        station.lands(slot(doors("front")))
    station.start()
    assert station.shared_rows() == 1
    assert Lake(station.lake.root).shared("doors").value == {"front"}


def test_a_slot_that_is_used_no_more_is_no_reject(station):
    gone = message(slot(doors()))._replace(payload=b"")
    station.turn(CONNECTED, gone, after_s=1)
    station.turn(after_s=1)
    assert DeltaTable(station.lake.rejects).version() == 0


def test_a_slot_of_another_variable_is_refused(station):
    station.lands(slot(Counter()), SharedFrame(KITCHEN, 1, "doors", 5, 0, encode(doors("a"))))
    found = DeltaTable(station.lake.rejects).to_pyarrow_table().to_pylist()
    assert [(row["reason"], row["frames"]) for row in found] == [
        ("variable: another definition", 2)
    ]


def test_what_was_lost_on_the_way_is_asked_for_and_lands(station):
    state = doors("front", "back")
    report = VariableReport("doors", 1, tally(state))
    station.lands(BeatFrame(KITCHEN, 1, (), False, (report,)))  # noqa: FBT003 - a row
    station.turn(after_s=3)
    (ask,) = station.asks()
    assert (ask.about, ask.variable) == ("kitchen", "doors")
    station.lands(RepairFrame(KITCHEN, 1, "lander-1", "doors", ask.stream, encode(state)))
    assert Lake(station.lake.root).shared("doors").value == {"front", "back"}


def test_everything_removed_with_one_number_costs_one_row(station):
    emptied = ORSet()
    emptied.context.vector = dict.fromkeys(doors("a").context.vector, 1 << 39)
    station.lands(slot(emptied))
    assert station.shared_rows() == 1


def test_the_command_prints_what_variables_are_worth(station, capsys):
    opened = ORMap(Counter())
    opened |= opened.update(KITCHEN, "front", Counter.increment, 5)
    opened |= opened.update(CELLAR, "front", Counter.decrement, 2)
    station.lands(slot(doors("front", "back")), slot(opened, "opened"))
    root = station.lake.root
    assert main(["lake", "shared", "--lake", root, "--csv"]) == Exit.FINE
    assert capsys.readouterr().out.splitlines() == [
        "name,part,key,value",
        'doors,,,"""back"""',
        'doors,,,"""front"""',
        'opened,,"[""front""]",3',
    ]
    assert main(["lake", "shared", "windows", "--lake", root]) == Exit.NOT_FOUND
    assert "there are: doors, opened" in capsys.readouterr().err
    assert main(["lake", "status", "doors", "--lake", root]) == Exit.USAGE
