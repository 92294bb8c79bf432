"""Doors whose readings land in a lake and at a gateway, in the same batches."""

import pytest

from cloud_tier.job.opened import OpenTables
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.lake import Lake
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, scans
from lasp_edge.language.streaming import plain_parts
from lasp_edge.ordered.cells import PRESENT, Item, cell_of, packed
from lasp_edge.ordered.places import place_text
from lasp_edge.protocol.window_rows import COUNTED, missing_record
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import row, tick
from tests.device_agent.gateway.support_gateway import GatewayUnderTest
from tests.device_agent.gateway.support_streams import made_of

FIRST_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
MISSING = ("excluded", *COUNTED)
DEVICES = ("pi-0", "pi-1", "pi-2")
TERMS = WaitingTerms(DEVICES, dead_after_us=10**13, retain_us=3_600 * SECOND_US)


def doors(version=1, least=0):
    """Return a program of one scan over all doors, one by room, and one of halves by a filter."""
    program = Program("doors")
    door = program.event("door")
    program.result(
        program.scan("all", source=door, scan=scans.differences(), version=version),
        parts={"difference": "3"},  # coarser than what the scan gives
    )
    opened = program.filter(door, lambda event: event.value > least, "opened", version=least + 1)
    by_room = program.scan(
        "by_room",
        source=opened,
        key=lambda event: event.tags["room"],
        scan=scans.sessions(gap_s=30),
    )
    program.result(by_room)
    return program.plan()


class Fleet:
    """Devices whose cells of items land in a lake and at a gateway, in the same batches.

    Attributes:
        items: (device, item) -> its state.
    """

    def __init__(self, spark, root, plan=None, terms=TERMS):
        self.plan, self.items, self.terms = plan or doors(), {}, terms
        self._spark, self._root = spark, root
        self.gateway = GatewayUnderTest(self.plan, terms=terms)
        self._open()
        self._seq, self._ticks = 0, 0
        self.now_us = FIRST_US + 86_400 * SECOND_US

    def _open(self):
        self.lake = LakeUnderTest(
            self._spark,
            self.plan,
            self._root,
            roster=self.terms.roster,
            dead_after_us=self.terms.dead_after_us,
            retain_us=self.terms.retain_us,
            tentative_after_us=self.terms.tentative_after_us,
        )
        prepare(self.plan, self.lake.lake)

    def restart(self, plan=None):
        """Begin the processes of both again, perhaps with another release of the program."""
        if plan is not None:
            self.plan = self.gateway.plan = plan
            self._open()
        self.gateway.restart()
        self.lake.restart()

    def reads(self, device, at_s, value, room="hall", state=PRESENT, **life):
        """Let a device read something, or take it back; return the entry that it sends."""
        item = Item(FIRST_US + round(at_s * SECOND_US), value, f'{{"room":"{room}"}}')
        self.items[device, item] = max(state, self.items.get((device, item), 0))
        cell_us = cell_of(item.time_us)
        own = {each: state for (of, each), state in self.items.items() if of == device}
        cell = {each: state for each, state in own.items() if cell_of(each.time_us) == cell_us}
        return self.entry(device, cell_us, cell, **life)

    def entry(self, device, cell_us, cell, life=1):
        """Return a cell as it lands."""
        self._seq += 1
        where = {"stream": self.plan.item_streams["door"].stream, "pane_us": cell_us}
        cell = {"items": packed(cell), "received_us": self.now_us}
        return row("pane", device, life, 7, self._seq, **where, **cell)

    def retired(self, device, owed_s=None):
        """Return an operator's command, and up to when the device had promised to another sink."""
        self._seq += 1
        columns = {"control": self._seq, "retired": True}
        if owed_s is not None:
            columns["low_us"] = FIRST_US + owed_s * SECOND_US
        return row("member", device, 1, 7, self._seq, **columns)

    def promises(self, promised_s, *, done=False, life=1, until_s=None):
        """Return what all devices promise, or each by its name.

        And up to when another store had accepted readings, where they state that.
        """
        self._seq += 1
        several = promised_s if isinstance(promised_s, dict) else dict.fromkeys(DEVICES, promised_s)
        heard = {"done": done, "received_us": self.now_us}
        if until_s is not None:
            heard["since_us"] = FIRST_US + until_s * SECOND_US
        return [
            row(
                "promise",
                device,
                life,
                7,
                self._seq,
                low_us=FIRST_US + round(s * SECOND_US),
                **heard,
            )
            for device, s in several.items()
        ]

    def land(self, entries=(), promised_s=None, **how):
        """Let entries land, and devices promise, at the gateway and in the lake."""
        self.gateway.step(self.batch(entries, promised_s, **how))
        return self.lake.step(self.last)

    def batch(self, entries, promised_s=None, **how):
        """Return the rows of a batch."""
        self._ticks += 1
        said = [] if promised_s is None else self.promises(promised_s, **how)
        self.last = [*entries, *said, tick(self._ticks, self.now_us, FIRST_US)]
        return self.last

    def rows(self, name):
        """Return place -> key, parts in steps, status and who is missing, as the lake has them."""
        columns = self.plan.fleet_results[name].columns
        table = Lake(self.lake.lake.root).results(name).current().to_pylist()
        assert {each["device"] for each in table} <= {""}
        record = ("status", *MISSING)
        return {
            each["place"]: (each["key"], tuple(map(each.get, columns)), *map(each.get, record))
            for each in table
        }

    def of_gateway(self, name):
        """Return the same of the gateway."""
        result = self.plan.fleet_results[name]
        return {
            place_text(place): (
                row.event.key,
                plain_parts(result, row.event.value),
                row.status,
                *map(missing_record(row.excluded, row.status).get, MISSING),
            )
            for place, row in self.gateway.core.streams.stored(name)
            if row.event is not None
        }

    def missing(self, name):
        """Return the status and the names of each row, in the order of their places."""
        found = sorted(self.rows(name).items())
        return [(status, excluded) for _, (_, _, status, excluded, *_) in found]

    def truth(self, name, frontier_s=None):
        """Return place -> key and parts, as the oracle makes them of all items."""
        result = self.plan.fleet_results[name]
        frontier_us = self.gateway.core.streams.frontier_us
        if frontier_s is not None:
            frontier_us = FIRST_US + frontier_s * SECOND_US
        found = made_of(self.plan, self.items, name, frontier_us)
        return {
            place_text(at): (each.key, plain_parts(result, each.value))
            for at, each in found.items()
        }

    def check(self, *, statuses=True):
        """Compare the lake with the gateway, and both with the oracle."""
        for name in self.plan.fleet_results:
            found = self.rows(name)
            if statuses:
                assert found == self.of_gateway(name), name
            assert {at: each[:2] for at, each in found.items()} == self.truth(name), name


class KilledError(Exception):
    """The process ends here."""


def dies(fleet, commits):
    """Let the process of a batch die after so many commits; False if it merged it all before."""
    append, left = OpenTables.append, [commits]

    def counted(tables, path, rows, *frontier):
        before = tables.table(path).version()
        append(tables, path, rows, *frontier)
        left[0] -= tables.table(path).version() > before
        if left[0] == 0:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenTables, "append", counted)
        try:
            fleet.lake.step(fleet.last)
        except KilledError:
            return True
        finally:
            fleet.lake.restart()
    return False
