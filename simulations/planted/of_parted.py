"""Bugs of scans with local events: shares, answers, marks, and what is final of their rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

from device_agent.agent.scans import leaving, shares
from lasp_edge.evaluation import fleet, reconciling
from lasp_edge.evaluation.parted import PartedScans
from lasp_edge.language import parting
from lasp_edge.language.declarations import Stream
from lasp_edge.language.draft import Draft
from lasp_edge.language.ordering import Made
from lasp_edge.ordered import gathering, parted
from lasp_edge.ordered.answers import BASIS_BYTES, PartAnswer
from lasp_edge.ordered.cells import CellId
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.gathering import Gathering, OrderedRecord
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.parted import RootScan
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import encoded
from simulations.planted.bug import planted, replaced
from simulations.world import programs
from simulations.world.fleet_streamed import Epochs
from simulations.world.local_events import synced
from simulations.world.run import run
from simulations.world.scenario import scenario_of

LAW = "local events"
"""Each seed is a world whose scan over the fleet has local events."""
of_parted = partial(planted, needs=LAW)


def troubles(seed: int) -> Sequence[str]:
    """Return what goes wrong in the world of a seed."""
    return run(synced(scenario_of(seed))).trouble


@of_parted
def parts_of_any_share_are_joined() -> Iterator[None]:
    """A share is revised: half of the parts are made of the former one, and joined all the same."""

    def joins(*_bases: bytes) -> bool:
        return True

    def counts(*given: Any) -> bool:
        return given[-2] is not None

    with (
        replaced(RootScan, "joins", joins),
        replaced(Gathering, "counts", counts),
    ):
        yield


@of_parted
def who_has_not_answered_has_made_nothing() -> Iterator[None]:
    """F has passed a place, and a device learns of it later: its part is on its way."""

    def counts(*given: Any) -> bool:
        answer, basis = given[-2:]
        return answer is None or answer.basis == basis

    with replaced(Gathering, "counts", counts):
        yield


@of_parted
def a_basis_does_not_name_the_share() -> Iterator[None]:
    """A place was answered under another share of the place before, and that answer counts."""

    def basis_of(place: Place, _share: Any) -> bytes:
        return sha256(encoded(place)).digest()[:BASIS_BYTES]

    with replaced(parted, "basis_of", basis_of), replaced(gathering, "basis_of", basis_of):
        yield


@of_parted
def what_was_revised_with_an_answer_is_not_waited_for() -> Iterator[None]:
    """An answer has landed, and the rows that its device revised with it are on their way."""

    def is_promised(self: Gathering, _given: PartAnswer) -> bool:  # noqa: ARG001 - a method
        return True

    with replaced(Gathering, "is_promised", is_promised):
        yield


@of_parted
def a_device_that_waits_for_a_share_counts_as_gone_on() -> Iterator[None]:
    """All have answered, one does not know the share behind it yet, and its rows count as final."""

    def has_gone_on(*_given: Any) -> bool:
        return True

    with replaced(PartAnswer, "has_gone_on_from", has_gone_on):
        yield


@of_parted
def rows_are_final_by_the_frontier_alone() -> Iterator[None]:
    """F has passed, and a device has not answered: its part is still to change the row."""

    def settled_us(self: Gathering, frontier_us: int) -> int:  # noqa: ARG001 - a method
        return frontier_us

    with replaced(Gathering, "settled_us", settled_us):
        yield


@of_parted
def shares_count_by_their_arrival() -> Iterator[None]:
    """An older publication of a cell overtakes a newer one, and takes its place on a device."""

    def replaces(*_versions: int) -> bool:
        return True

    with replaced(shares, "replaces", replaces):
        yield


@of_parted
def answers_are_taken_back_and_marks_forgotten() -> Iterator[None]:
    """A gateway restarts, publishes places without shares, and devices take their answers back."""
    right = PartedScans.begin

    def kept_answers(delta: Delta) -> Delta:
        return delta

    def begin(self: PartedScans, floor_us: int = BEFORE_ALL_US) -> None:
        right(self, floor_us)
        for each in self.gathered.values():
            for place, record in each.records.items():
                each.records[place] = OrderedRecord(record.key)

    def marks(
        self: PartedScans,  # noqa: ARG001 - a method
        event: str,  # noqa: ARG001
        least_us: int,  # noqa: ARG001
        end_us: int,  # noqa: ARG001
    ) -> Iterator[tuple[CellId, InputCell]]:
        return iter(())

    with (
        replaced(leaving, "kept_answers", kept_answers),
        replaced(PartedScans, "begin", begin),
        replaced(PartedScans, "marks", marks),
    ):
        yield


@of_parted
def an_untouched_share_adds_something() -> Iterator[None]:
    """The share of a scan has something where `join` adds: it counts once for each device."""

    def share(self: Epochs, state: Any) -> Any:  # noqa: ARG001 - a method
        return state[0], 1, state[0]

    with replaced(Epochs, "share", share):
        yield


@of_parted
def a_reading_is_in_a_part_and_leaves_as_an_item() -> Iterator[None]:
    """A local event leaves, too: the gateway steps it where the part of its device has it."""
    with _declared(lambda names, each: replace(each, sources=(*names, each.sources[-1])), "gather"):
        yield


@of_parted
def parts_of_two_programs_meet() -> Iterator[None]:
    """Half of a fleet is updated: what a part counts has changed, and its stream has not."""
    with _declared(lambda _, each: replace(each, fingerprint=each.name)):
        yield


@contextmanager
def _declared(
    changed: Callable[[tuple[str, ...], Stream], Stream], operator: str = ""
) -> Iterator[None]:
    """Change the streams of scans with local events where they are declared."""
    right = parting._add_streams  # noqa: SLF001 - a bug is planted from outside

    def add_streams(
        draft: Draft, made: Made, names: tuple[str, ...], stays: tuple[str, ...], meaning: list[Any]
    ) -> None:
        before = set(draft.streams)
        right(draft, made, names, stays, meaning)
        for name in draft.streams.keys() - before:
            stream = draft.streams[name]
            if operator in {"", stream.operator}:
                draft.streams[name] = changed(names, stream)

    programs._plan.cache_clear()  # noqa: SLF001 - plans are made once
    with replaced(parting, "_add_streams", add_streams):
        yield
    programs._plan.cache_clear()  # noqa: SLF001 - plans are made once


@of_parted
def an_open_place_is_settled_once_it_is_marked() -> Iterator[None]:
    """A place is marked, the share before it changes, and what is behind it counts as settled."""
    right: Callable[[Gathering, Any], None] = Gathering._touch_behind  # noqa: SLF001 - see above

    def touch_behind(self: Gathering, place: Any) -> None:
        if not self.records[place].mark:
            right(self, place)

    with replaced(Gathering, "_touch_behind", touch_behind):
        yield


@of_parted
def a_share_is_published_once() -> Iterator[None]:
    """A message with shares is lost, and no device gets it again."""

    def repeat(self: PartedScans) -> None:
        """Publish nothing again."""

    with replaced(PartedScans, "repeat", repeat):
        yield


@of_parted
def a_gateway_that_was_put_back_publishes_below_what_it_had() -> Iterator[None]:
    """Its disk was replaced by an older copy: no device takes what it publishes from then on."""

    def overtake(*_given: Any, **_named: Any) -> None:
        """Go on where the store is."""

    def repeat(self: PartedScans) -> None:
        self.publish_all()

    def following(self: PartedScans, name: str, cell_us: int) -> int:
        return self.numbers.get((name, cell_us), 0) + 1

    with (
        replaced(PartedScans, "overtake", overtake),
        replaced(PartedScans, "repeat", repeat),
        replaced(PartedScans, "_next", following),
    ):
        yield


@of_parted
def who_has_answered_first_closes_a_place() -> Iterator[None]:
    """A device is off while another one answers, and is back before F has passed: it has more."""

    def has_passed(_frontier_us: int | None, _place: Place) -> bool:
        return True

    with replaced(gathering, "_has_passed", has_passed):
        yield


@of_parted
def records_stay_as_they_were_stored() -> Iterator[None]:
    """A gateway ran another program meanwhile, and has no records of the events in order since."""

    def reconcile(*_given: Any) -> None:
        """Leave the records as they are."""

    with replaced(fleet, "reconcile", reconcile):
        yield


@of_parted
def shares_are_not_known_again_at_a_start() -> Iterator[None]:
    """A gateway restarts: of each event in order that it looks at again it forgets the share."""
    right = reconciling.reconcile

    def reconcile(
        gathered: Mapping[str, Gathering], begun: Mapping[str, Delta], since_us: int
    ) -> None:
        events = {name: delta for name, delta in begun.items() if not name.endswith(": root")}
        right(gathered, events, since_us)

    with replaced(fleet, "reconcile", reconcile):
        yield


@of_parted
def a_place_that_closes_is_not_stored() -> Iterator[None]:
    """A gateway restarts, and events in order that were final are open again."""
    right: Callable[..., None] = Gathering._put  # noqa: SLF001 - see above

    def put(self: Gathering, place: Place, record: OrderedRecord) -> None:
        is_known = place in self.changed
        right(self, place, record)
        if record.answered and not is_known:
            self.changed.discard(place)

    with replaced(Gathering, "_put", put):
        yield
