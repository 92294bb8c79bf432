"""A gateway with streams over the fleet is killed in front of each write of each turn."""

from random import Random

from device_agent.gateway import streams as streams_module
from device_agent.gateway.store import FleetStore
from lasp_edge.ordered.cells import RETRACTED
from tests.device_agent.gateway.support_streams import DEVICES, FIRST_US, SECOND_US, Fleet, doors

LIVE_ITEMS = 10
"""So few that there are cuts."""


class KilledError(Exception):
    """The process ends here."""


class MortalDatabase:
    """A connection whose process ends in front of one of its statements."""

    def __init__(self, db, statements):
        self._db, self._left = db, statements

    def _one(self):
        self._left -= 1
        if self._left < 0:
            raise KilledError

    def execute(self, *arguments):
        self._one()
        return self._db.execute(*arguments)

    def executemany(self, *arguments):
        self._one()
        return self._db.executemany(*arguments)

    def __getattr__(self, name):
        return getattr(self._db, name)


class MortalFleet(Fleet):
    """Devices and a gateway whose process ends where it is to."""

    def __init__(self, plan, directory):
        self.directory = directory
        super().__init__(plan, FleetStore(directory))

    def start_again(self):
        """Begin another process on the file; what was not committed is gone."""
        self.gateway.keeper.close()
        self.gateway.keeper = FleetStore(self.directory)
        self.restart()

    def dies(self, statements, entries, promised_s):
        """Let a turn end in front of a statement; return whether it had so many."""
        return self.dies_in(lambda: self.land(entries, promised_s), statements)

    def dies_in(self, turn, statements):
        """Let the process end in a turn that something makes; see `dies`."""
        store = self.gateway.keeper
        right = store._db
        store._db = MortalDatabase(right, statements)
        try:
            turn()
        except KilledError:
            return True
        finally:
            store._db = right
            self.start_again()
        return False


def drawn(fleet, rng, n):
    """Return what devices send in a turn: some of it late, some taken back."""
    entries = []
    for at in range(4 * n, 4 * n + 4):
        late_s = rng.choice([0, rng.random() * 4 * at])
        value, room = rng.randrange(9), rng.choice("ab")
        entries.append(fleet.reads(rng.choice(DEVICES), 4 * at - late_s, value, room))
    device, item = rng.choice(sorted(fleet.items))
    at_s = (item.time_us - FIRST_US) / SECOND_US
    return [*entries, fleet.reads(device, at_s, item.value, item.tags[9], RETRACTED)]


def test_killed_in_front_of_each_write_of_each_turn_it_has_the_oracles_rows(tmp_path, monkeypatch):
    """Devices send again what was not acknowledged, after the last statement too."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", LIVE_ITEMS)
    rng, fleet, deaths = Random(5), MortalFleet(doors(), tmp_path), []
    for n in range(5):
        entries, statements = drawn(fleet, rng, n), 0
        while fleet.dies(statements, entries, 16 * n - 8):
            statements += 1
        fleet.check()
        fleet.land(entries, 16 * n - 8)
        fleet.check()
        deaths.append(statements)
    assert min(deaths) >= 6  # begin, entries, states, rows, promises, the end
    fleet.land([], 1_000)
    fleet.check()
    assert {status for status, _ in fleet.statuses("all").values()} == {"final", "revised"}
