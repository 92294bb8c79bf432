"""The laws of parts, stated once and run over one table: a part missing from it fails the suite."""

import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

import msgpack
import pytest

from crdts import BoundedLWWSet, GCounter, GSet, Replica, Version
from crdts.wire import encode
from device_agent.agent.settings import Settings
from lasp_edge import Program, folds
from lasp_edge.dataflow import at_least
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import HelloFrame, VouchFrame
from lasp_edge.protocol.frames import (
    AskFrame,
    BeatFrame,
    PaneFrame,
    PresenceFrame,
    VariableFrame,
    VariableReport,
)
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.shares import SharesFrame
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame, SummaryFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device, ack_of, entry_of
from tests.support_commands import member_command

PEER = Replica(3, 33, "pi-2")
TARGET = "local_average"


def program() -> Program:
    """Return a program with something to do for every part."""
    made = Program("parts")
    temperature = made.event("temperature", resolution="0.01")
    samples = made.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    total = made.declare(GCounter(), "total")
    warnings = made.declare(GSet(), "warnings")

    @made.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)
        update(total, GCounter.increment, 1)

    @made.on_threshold(total, at_least(2))
    def warned(_value, update):
        update(warnings, GSet.add, "two readings")

    here = made.fold(samples, folds.mean(), TARGET)
    everywhere = made.fold_dynamic(here, "global_average")
    made.fold_dynamic(here, "present average", stale_after_s=60)
    made.alert("too warm", everywhere, above=20.5, below=20)

    @made.on_value(TARGET, above=20)
    def warm(value, update):
        update(warnings, GSet.add, "warm here")

    made.window("minute", source=temperature, fold=folds.mean(), size_s=60)
    above = made.parameter("above", "21")
    made.window(
        "warm",
        source=temperature,
        fold=folds.count(),
        size_s=60,
        uses=(above,),
        where=lambda event, at: event.value > at[above],
    )
    return made


class Case(NamedTuple):
    """How a part is tried.

    Attributes:
        view: gives what must be equal after frames came once, or twice.
        durable: gives what must be equal after a restart.
        frames: gives frames that the part takes.
    """

    view: Callable[[Device], Any]
    durable: Callable[[Device], Any]
    frames: Callable[[Device], list[Frame]] = lambda _device: []


def nothing(_device: Device) -> None:
    """Some parts hold nothing."""


def shared(device: Device) -> Any:
    return device.core.variables.shared()


def own_partial(device: Device) -> Any:
    entry = device.core.samples.published[TARGET].entries.entry("pi-1", 0)
    return entry and [partial for _, _, partial in entry.payload]


def progress(device: Device) -> Any:
    made = device.core.intake.progress
    return made.stamp_us, made.high_us, made.floor_us, device.store.restored().sources


def panes(device: Device) -> Any:
    rows = sorted((pane, row.partial, row.dirty) for pane, row in device.rows())
    return rows, [sink.store for sink in device.core.panes.sinks]


def landed(device: Device) -> list[Frame]:
    return [ack_of(device.name, *device.frames(PaneFrame))]


def entries(device: Device) -> list[Frame]:
    stream = device.program.local_folds[TARGET].stream
    return [
        entry_of(PEER, 2, TARGET, stream, (1, 2200)),
        AskFrame(PEER, 1, "pi-1", TARGET),
    ]


def parts_of_states(device: Device) -> list[Frame]:
    stream, state = device.program.shared_streams["total"], GCounter().increment(PEER, 3)
    other = state.increment(PEER._replace(device="pi-3"), 4)
    digest = device.core.sharing.reports()[0].digest
    return [
        SharedFrame(PEER, 2, "total", stream, 0, encode(state)),
        RepairFrame(PEER, 1, "pi-1", "total", stream, encode(other)),
        SummaryFrame(PEER, 1, "pi-1", "total", stream, msgpack.packb(state.digest())),
        BeatFrame(PEER, 1, (), False, (VariableReport("total", 1, digest + 1),)),  # noqa: FBT003
    ]


def note(device: Device) -> Frame:
    """Return a peer's note that another device is absent."""
    (fold,) = [f.absence for f in device.program.dynamic_folds.values() if f.absence]
    shard = key_shard("pi-3")
    return VariableFrame(
        PEER, 1, fold.name, fold.stream, shard, ("pi-3",), (1,), ((1,), (7,), (3,))
    )


def beats(device: Device) -> list[Frame]:
    digest = device.core.exchange.reports()[0].digest
    return [
        PresenceFrame(PEER, 1, online=True),
        BeatFrame(PEER, 1, (), False, (VariableReport(TARGET, 1, digest),)),  # noqa: FBT003
    ]


def command() -> Frame:
    return member_command(PEER, 1, "pi-3", 1, True, Version(2, 5, 60))  # noqa: FBT003


def told(device: Device) -> Frame:
    """Return an answer to the device's own hello."""
    device.core.fence._ask(device.now_us)
    life = Replica(7, 77, "pi-1")
    return VouchFrame(PEER, 1, "pi-1", device.core.fence._challenge, life, life, ())


def cloned(device: Device) -> list[Frame]:
    """Let something be noted that ends by time, which alone lets the part be due."""
    device.core.agent.notices.alarm(
        "clone", "cloned", now_us=device.now_us, lasts_us=99 * SECOND_US
    )
    return []


PARTS = {
    "fence": Case(
        lambda device: device.core.replica,
        lambda device: device.core.replica.incarnation >= 8,
        lambda device: [told(device)],
    ),
    "witness": Case(
        lambda device: list(device.core.witnessing.witness.lines()),
        nothing,
        lambda device: [*beats(device), HelloFrame(PEER, 1, "pi-1", challenge=5, attempt=1)],
    ),
    "clock": Case(lambda device: device.core.timing.state, nothing, beats),
    "waiting": Case(nothing, nothing),
    "intake": Case(progress, progress),
    "missing panes": Case(
        lambda device: device.core.missing.report(),
        lambda device: device.core.missing.report(),
    ),
    "variables": Case(shared, shared, parts_of_states),
    "reactions": Case(shared, shared),
    "samples": Case(
        lambda device: device.core.samples.partials(TARGET),
        lambda device: device.core.samples.partials(TARGET),
    ),
    "sharing": Case(shared, shared, parts_of_states),
    "exchange": Case(lambda device: device.core.results.fleet(), own_partial, entries),
    "panes": Case(panes, panes, lambda device: [*landed(device), command()]),
    "beats": Case(
        lambda device: device.frames(BeatFrame)[-1],
        lambda device: device.core.intake.progress.promised_us,
        lambda device: [
            PresenceFrame(device.core.replica, 1, online=False),
            AskFrame(PEER, 1, "pi-1", ""),
            *landed(device),
            *entries(device),
            *parts_of_states(device),
        ],
    ),
    "results": Case(
        lambda device: device.core.results.plain(),
        lambda device: device.core.results.plain()[TARGET],
        entries,
    ),
    "voice": Case(
        lambda device: sorted(device.core.voice.voices),
        nothing,
        lambda _device: [PresenceFrame(PEER, 1, online=True, speaks=True)],
    ),
    "agreements": Case(
        lambda device: device.core.agreements.all(),
        lambda device: device.store.restored().facts.settled["global_average"].devices,
        beats,
    ),
    "absences": Case(
        lambda device: device.core.report()["values"]["present average"],
        lambda device: device.store.restored().facts.absences,
        lambda device: [*beats(device), entries(device)[0], note(device)],
    ),
    "commands": Case(
        lambda device: device.core.commands.known,
        lambda device: device.core.commands.known,
        lambda _device: [
            command(),
            CommandFrame(PEER, 1, "above", "", ((NOW_US, 1, "ann", "20"),)),
        ],
    ),
    "programs": Case(
        lambda device: device.core.report()["other_programs"],
        lambda device: device.core.report()["other_programs"],
        lambda _device: [PresenceFrame(PEER, 1, online=True, program="0123", release="0.0.9")],
    ),
    "current values": Case(nothing, nothing),
    "value reactions": Case(shared, shared),
    "alerts": Case(
        lambda device: device.core.report()["alerts"]["too warm"],
        lambda device: device.core.report()["alerts"]["too warm"]["state"],
    ),
    "acting records": Case(
        lambda device: device.store.restored().facts.acted,
        lambda device: device.store.restored().facts.acted,
    ),
    "notices": Case(
        lambda device: device.core.report()["notices"],
        nothing,
        cloned,
    ),
    "shown topics": Case(nothing, lambda device: device.store.restored().facts.shown),
    "stored variables": Case(shared, shared, parts_of_states),
    "counters": Case(
        lambda device: device.core.counters.totals, lambda device: device.core.counters.totals
    ),
}


def worked(directory, nonce=7) -> Device:
    """Return a device that has read, agreed with itself, and published everything."""
    device = Device(directory, program().plan(), settings=Settings(keep_readings=True))
    device.restart(nonce)
    device.read([20.0, 21.0, 22.0], [NOW_US, NOW_US + 1, NOW_US + 90 * SECOND_US])
    for _ in range(15):
        device.tick()
    return device


def test_every_part_is_in_the_table(tmp_path):
    device = worked(tmp_path)
    assert [part.name for part in device.core.part_list.parts] == list(PARTS)
    taken = {kind for part in device.core.part_list.parts for kind in part.handlers}
    # Shares are taken where a scan has local events alone (`scans.test_shares`).
    assert taken == {row.frame for row in FRAME_KINDS.values()} - {PaneFrame, SharesFrame}
    for part in device.core.part_list.parts:
        tried = {type(frame) for frame in PARTS[part.name].frames(device)}
        if part.name not in {"fence", "witness", "clock"}:  # they take what other rows bring
            assert tried >= set(part.handlers), part.name


@pytest.mark.parametrize("name", PARTS)
def test_nothing_leaves_before_its_changes_are_committed(tmp_path, name):
    device = worked(tmp_path)
    for frame in PARTS[name].frames(device):
        device.hear(frame)
    device.read([23.0], [device.now_us])
    device.now_us += 20 * SECOND_US
    for publication in device.durable.tick(device.now_us):
        assert publication
        assert not device.core.prepare_commit()


@pytest.mark.parametrize("name", PARTS)
def test_where_a_commit_fails_nothing_leaves(tmp_path, name):
    device = worked(tmp_path)
    for frame in PARTS[name].frames(device):
        device.hear(frame)
    device.core.counters.add("something that must be durable")

    def full(_changes):
        raise sqlite3.OperationalError("disk full")

    device.store.commit = full
    published = []
    with pytest.raises(sqlite3.OperationalError):
        published.extend(device.durable.tick(device.now_us + 20 * SECOND_US))
    assert published == []
    with pytest.raises(AssertionError, match="committed before anything is published"):
        next(device.core.publications(device.now_us))


@pytest.mark.parametrize("name", PARTS)
def test_restarting_from_the_store_equals_going_on(tmp_path, name):
    device, case = worked(tmp_path), PARTS[name]
    for frame in case.frames(device):
        if not isinstance(frame, VariableFrame):  # the broker keeps what peers say, not the store
            device.hear(frame)
    device.core.handle_stop()
    device.tick()
    before = case.durable(device)
    device.restart()
    device.tick(0)
    assert case.durable(device) == before


def test_a_store_names_its_program_and_is_written_no_more_for_it(tmp_path):
    device = worked(tmp_path)
    assert device.store.restored().facts.program == "parts"
    device.restart()
    (part,) = [part for part in device.core.part_list.parts if part.name == "programs"]
    assert not part.is_changed


@pytest.mark.parametrize("name", PARTS)
def test_any_frame_twice_equals_once(tmp_path, name):
    found = []
    for times in (1, 2):
        device = worked(tmp_path / str(times))
        for frame in PARTS[name].frames(device):
            for _ in range(times):
                device.hear(frame)
        device.tick(5)
        found.append(PARTS[name].view(device))
        device.kill()
    assert found[0] == found[1]


def failing(*_arguments: Any) -> Any:
    raise RuntimeError("nobody foresaw this")


@pytest.mark.parametrize("name", PARTS)
def test_an_unforeseen_exception_is_counted_and_all_parts_go_on(tmp_path, name, monkeypatch):
    device = worked(tmp_path)
    part = next(part for part in device.core.part_list.parts if part.name == name)
    frames = PARTS[name].frames(device)
    with monkeypatch.context() as broken:
        made = [name for name in ("tick", "publications") if name in vars(type(part))]
        for method in made:  # a part is called only where it has something to do
            broken.setattr(part, method, failing)
        broken.setattr(
            device.core.part_list,
            "handlers",
            {
                kind: [(one, failing if one is part else handler) for one, handler in handlers]
                for kind, handlers in device.core.part_list.handlers.items()
            },
        )
        for frame in frames:
            device.hear(frame)
        device.read([23.0], [device.now_us])
        device.tick(20)
        device.tick(20)
    kinds = {type(frame).__name__ for frame in frames if type(frame) in part.handlers}
    reasons = {f"{what}: RuntimeError: nobody foresaw this" for what in {*made, *kinds}}
    counted = {n.removeprefix(f"failed: {name}, ") for n in device.counted if "failed: " in n}
    assert {reason.partition(" (")[0] for reason in counted} == reasons
    assert all("test_parts.py:" in reason for reason in counted)
    assert device.counted["accepted"] == 4
    device.core.handle_connected(device.now_us)
    for frame in frames:
        device.hear(frame)
    device.tick(20)
    device.tick(20)
    assert device.core.samples.partials(TARGET) == {"": (4, 8600)}, "it goes on"
    assert device.store.restored().counters["accepted"] == 4
