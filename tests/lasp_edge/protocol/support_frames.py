"""A small program, and frames of one of its devices, for tests of what a lander accepts."""

from typing import Any

from crdts import BoundedLWWSet, Membership, Replica, Version
from lasp_edge import Program, folds
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, VariableFrame
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.sinks import DEFAULT_SINK, SinkLow, store_tag
from lasp_edge.protocol.topics import Topics, topic_of
from tests.support_commands import member_command

SECOND_US = 1_000_000
BEGIN_US = 1_699_999_980 * SECOND_US
NOW_US = BEGIN_US + 100 * SECOND_US
TOPICS = Topics("rooms")
ME = Replica(3, 7, "pi-0")
STORE = "lake-1"
LANDER = Replica(1, 4, "lander-1")
OPERATOR = Replica(1, 5, "operator")


def rooms(*, keyed: bool = False) -> Plan:
    """Return a program with a window by room, and a dynamic fold that may be by room, too."""
    program = Program("rooms")
    event = program.event("temperature", resolution="0.01")

    def room(event: Any) -> str:
        return event.tags["room"]

    key = room if keyed else None
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples", key=key)
    program.collect(event, into=samples)
    program.fold_dynamic(program.fold(samples, folds.mean(), "local_average"), "global_average")
    program.window("by_room", source=event, fold=folds.mean(), size_s=60, slide_s=10, key=room)
    return program.plan()


def packed() -> Plan:
    """Return a program with every binary column, and one that stands beside another."""
    program = Program("rooms")
    event = program.event("temperature", resolution="0.01")
    fold = folds.struct(
        p=folds.quantile(0.5), top=folds.top(2), seen=folds.distinct(), last=folds.last()
    )
    program.window("by_room", source=event, fold=fold, size_s=60, slide_s=10)
    return program.plan()


def acceptance(
    plan: Plan,
    membership: Membership | None = None,
    sink: tuple[str, str] = ("lake", STORE),
    **known: Any,
) -> Acceptance:
    """Return what a lander of this program accepts."""
    streams = (plan.windows.values(), plan.published_folds.values())
    return Acceptance(*streams, TOPICS, sink, membership=membership, **known)


def record(frame: Frame, *, at_us: int = NOW_US, retained: bool = False, topic: str = "") -> Record:
    """Return the message that brings a frame."""
    return Record(at_us, topic or topic_of(frame, TOPICS), retained, frame.encode())


def panes(
    plan: Plan, number: int, *, replica: Replica = ME, first_seq: int = 1, **changes: Any
) -> PaneFrame:
    """Return a frame of two panes of `by_room`."""
    window = plan.windows["by_room"]
    block = PaneEntries(
        stream=window.stream,
        span_us=window.span_us,
        incarnation=replica.incarnation,
        nonce=replica.nonce,
        columns=((1, 2), (2000, 4100)),
        keys=("attic", "cellar"),
        panes_us=(BEGIN_US, BEGIN_US + 10 * SECOND_US),
        seqs=(first_seq, first_seq + 1),
    )
    return PaneFrame(replica, number, (block._replace(**changes),))


def variable(plan: Plan, seq: int, *parts: int, replica: Replica = ME) -> VariableFrame:
    """Return the frame of the local average."""
    local = plan.published_folds["local_average"]
    columns = tuple((part,) for part in parts)
    return VariableFrame(replica, seq, local.name, local.stream, 0, ("",), (seq,), columns)


def shard(
    plan: Plan,
    number: int,
    keys: list[str],
    *,
    seqs: tuple[int, ...] | None = None,
    at: int | None = None,
) -> VariableFrame:
    """Return the frame of a shard of the local average by room."""
    local = plan.published_folds["local_average"]
    of = key_shard(keys[0]) if at is None else at
    columns = ((1,) * len(keys), tuple(range(len(keys)))) if keys else ()
    seqs = (number,) * len(keys) if seqs is None else seqs
    return VariableFrame(ME, number, local.name, local.stream, of, tuple(keys), seqs, columns)


def keys_of_shard(at: int, count: int) -> list[str]:
    """Return some keys of one shard, sorted."""
    return sorted(k for k in map(str, range(1000)) if key_shard(k) == at)[:count]


def beat(
    number: int,
    low_us: int | None,
    *,
    replica: Replica = ME,
    done: bool = False,
    sink: str = DEFAULT_SINK,
    store: str = "",
    commit: int = 0,
) -> BeatFrame:
    """Return a beat, of a device that knows no store yet unless it is given."""
    return BeatFrame(replica, number, (SinkLow(sink, store_tag(store), low_us, commit),), done, ())


def command(
    control: int, *, retired: bool = True, seq: int = 0, replica: Replica = ME
) -> CommandFrame:
    """Return a member command of an operator."""
    return member_command(OPERATOR, 1, replica.device, control, retired, Version.of(replica, seq))
