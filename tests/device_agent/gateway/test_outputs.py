"""A gateway's streams over outputs of devices: the newest version of the device counts."""

from random import Random

import pytest

from device_agent.gateway import streams as streams_module
from lasp_edge import Event, Program, scans
from lasp_edge.language.streaming import FLEET, graph_of, plain_parts
from lasp_edge.ordered.cells import CELL_US, cell_of
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.sent_outputs import OutputAt, OutputForm, packed_outputs
from lasp_edge.protocol.acceptance import PaneRows
from lasp_edge.protocol.blocks import PaneEntries
from tests.device_agent.gateway.support_streams import FIRST_US, SECOND_US, Fleet

DEVICES = ("pi-0", "pi-1", "pi-2")


def steps():
    """Return a program with a scan over the fleet of what each device's scan emits."""
    program = Program("doors")
    door = program.event("door")
    step = program.scan("step", source=door, scan=scans.differences(), per_device=True)
    program.result(program.scan("all", source=step, scan=scans.differences()))
    return program.plan()


class Outputs(Fleet):
    """Devices that send outputs of a scan of their own.

    Attributes:
        said: (device, place) -> the version and the value of the newest that has landed.
    """

    def __init__(self, plan, keeper=None):
        self.said, self._sent = {}, {}
        super().__init__(plan, keeper)

    def emits(self, device, at_s, value, version, tie=("door", "", 1)):
        """Let a life of a device say what is at a place; return the entry. None: nothing."""
        at = OutputAt(FIRST_US + round(at_s * SECOND_US), tie, (0,))
        self._sent[device, version] = (at, value)
        content = None if value is None else ("step", value, "", "")
        incarnation, nonce, seq = version
        stream = self.plan.item_streams["step"].stream
        columns = ((packed_outputs({at: content}),),)
        # Each has a name of its own, in another order than the versions: none replaces another.
        name = (f"{999 - seq:03}",)
        where = (stream, CELL_US, incarnation, nonce, columns, name, (cell_of(at.time_us),), (seq,))
        return PaneRows(device, PaneEntries(*where), self._now_us)

    def land(self, entries=(), promised_s=None):
        for device, block, _ in entries:
            version = (block.incarnation, block.nonce, block.seqs[0])
            at, value = self._sent[device, version]
            if version > self.said.get((device, at), ((),))[0]:
                self.said[device, at] = (version, value)
        return super().land(entries, promised_s)

    def truth(self, name):
        content = {
            at.place(device): Event("step", value, at.time_us, device, {})
            for (device, at), (_, value) in self.said.items()
            if value is not None
        }
        result, frontier_us = self.plan.stream_results[name], None
        frontier_us = self.gateway.core.streams.frontier_us
        found = outputs_of(graph_of(self.plan, FLEET).nodes, {"step": content}, frontier_us)[name]
        return {at: (each.key, plain_parts(result, each.value)) for at, each in found.items()}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("live", [50_000, 20])
def test_of_outputs_the_newest_version_counts_in_whatever_order_they_come(
    keeper, monkeypatch, seed, live
):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", live)
    rng, fleet = Random(seed), Outputs(steps(), keeper)
    sent = []
    for n in range(120):
        version = (1 + n // 50, 7 + n // 50, n + 1)
        at_s = rng.choice([4 * n, rng.randrange(4 * n + 1) // 4 * 4])
        value = rng.choice([None, rng.randrange(9), rng.randrange(9)])
        sent.append(fleet.emits(rng.choice(DEVICES), at_s, value, version))
        # Two in three arrive now, the others later or never; and some arrive twice.
        arriving = [each for each in (rng.choice(sent), sent[-1]) if rng.random() < 2 / 3]
        fleet.land(arriving, promised_s=4 * n - 30 if n % 5 == 0 else None)
        fleet.check()
        if n % 17 == 0:
            fleet.restart()
            fleet.check()
    assert len(fleet.rows("all")) > 20


def test_what_a_later_life_takes_back_is_gone_though_the_earlier_one_comes_again(keeper):
    fleet = Outputs(steps(), keeper)
    first = [fleet.emits("pi-0", at_s, at_s, (1, 7, at_s)) for at_s in (1, 2, 3)]
    fleet.land(first, promised_s=0)
    fleet.land([fleet.emits("pi-0", 2, None, (2, 9, 1))], promised_s=60)
    assert [parts for _, parts in fleet.rows("all").values()] == [(2,)]
    fleet.restart()
    fleet.land(first, promised_s=70)
    fleet.check()
    assert [parts for _, parts in fleet.rows("all").values()] == [(2,)]


def test_timers_of_two_devices_at_one_time_have_places_of_their_own():
    fleet, tie = Outputs(steps()), ("step", "")
    both = [fleet.emits(device, 5, value, (1, 7, 1), tie) for device, value in (("a", 3), ("b", 8))]
    fleet.land(both, promised_s=60)
    assert [parts for _, parts in fleet.rows("all").values()] == [(5,)]


GOOD = OutputAt(FIRST_US, ("door", "", 1), (0,))
CONTENT = ("step", 1.5, "", '{"room":"attic"}')
UNFIT = {
    "two cells": packed_outputs({GOOD: CONTENT, GOOD._replace(time_us=FIRST_US + CELL_US): None}),
    "nothing": packed_outputs({}),
    "a value that is not plain": packed_outputs({GOOD: ("step", [float("inf")], "", "")}),
    "tags": packed_outputs({GOOD: (*CONTENT[:3], "{}")}),
    "a tie without names": packed_outputs({GOOD._replace(tie=(1, 2)): CONTENT}),
    "a text of an event with numbers": packed_outputs({GOOD._replace(tie=("door", "", "x")): None}),
    "a number of an event with texts": packed_outputs({GOOD._replace(tie=("word", "", 1)): None}),
    "a number in a timer's tie": packed_outputs({GOOD._replace(tie=("step", "", 1)): None}),
    "a path of texts": packed_outputs({GOOD._replace(path=("a",)): CONTENT}),
    "no bytes": b"",
    "no cell": b"\xc0",
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_is_no_cell_of_outputs_is_refused(case):
    form = OutputForm((("door", False), ("word", True)))
    assert form.within_limits((packed_outputs({GOOD: CONTENT}),))
    assert not form.within_limits((UNFIT[case],))
