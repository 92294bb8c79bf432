"""The rows of types that can forget: each live write, and runs of writes that were removed.

Seen from one write a state is a short ladder (`crdts.causal`): unheard of, live, removed. So the
join takes the higher rung, and needs no row for known writes: each of them is live or
gone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from cloud_tier.shared.rows import GONE, LIVE, Place, SharedRow, mark_of, text_of, value_of
from crdts import CausalContext, DWFlag, EWFlag, Lattice, ORMap, Replica
from crdts.causal import Causal
from crdts.causal_context import pack, unpack
from crdts.plain import encoded

BelowRows = Callable[[Lattice, Place], Iterator[SharedRow]]
BelowState = Callable[[Lattice, Sequence[SharedRow]], Lattice]

_SHOWN_OF_FLAGS: Final[dict[type[Lattice], str]] = {EWFlag: "true", DWFlag: "false"}
"""What a flag is worth while any of its writes is live."""


def causal_rows(state: Causal, place: Place, below: BelowRows) -> Iterator[SharedRow]:
    """Yield the rows of a causal state; `below` gives those of what a map holds whole."""
    here = place._replace(context=place.part)
    for dot, payload in state.dots.items():
        replica, seq = unpack(dot)
        at = here._replace(replica=replica, seq=seq, mark=mark_of(payload))
        yield from _written(state, payload, payload, at, below)
    for replica, first, last in _removed(state):
        yield here.gone(replica, first, last)


def causal_state(bottom: Causal, rows: Sequence[SharedRow], below: BelowState) -> Causal:
    """Return the state of these rows, which agree on each write."""
    of_write: dict[tuple[Replica, int], list[SharedRow]] = {}
    for row in rows:
        if row.kind not in {LIVE, GONE}:
            of_write.setdefault((row.replica, row.seq), []).append(row)
    dots, known = {}, []
    for row in rows:
        if row.kind == LIVE:
            parts = of_write.get((row.replica, row.seq), ())
            dots[pack(row.replica, row.seq)] = _payload(bottom, row, parts, below)
        if row.kind in {LIVE, GONE}:
            known.append((row.replica, row.seq, row.upto or row.seq))
    return bottom.part(dots, _context(known))


def _written(
    kind: Lattice, write: Any, payload: Any, place: Place, below: BelowRows
) -> Iterator[SharedRow]:
    """Yield the rows of one live write.

    Args:
        kind: what `payload` is a part of.
        write: its whole payload.
        payload: the part of it at this place.
        place: where that is.
        below: gives the rows of a state.
    """
    tie = encoded(write).decode()
    if not isinstance(kind, ORMap):
        shown = _SHOWN_OF_FLAGS.get(type(kind))
        yield place.live(text_of(payload) if shown is None else shown, tie)
        return
    key, inner = payload
    at = place._replace(keys=(*place.keys, key))
    if isinstance(kind.of, Causal):
        yield from _written(kind.of, write, inner, at, below)
    else:
        yield at.live(None, tie)
        yield from below(inner, at)


def _payload(kind: Causal, row: SharedRow, parts: Sequence[SharedRow], below: BelowState) -> Any:
    keys, within = list(row.keys), kind
    while isinstance(within, ORMap) and isinstance(within.of, Causal):
        within = within.of
    payload: Any
    if isinstance(within, ORMap):
        payload = below(within.of, parts)
    elif type(within) in _SHOWN_OF_FLAGS:
        payload = None
    else:
        payload = value_of(row.value or "")
    for key in reversed(keys):
        payload = (key, payload)
    return payload


def _removed(state: Causal) -> Iterator[tuple[Replica, int, int]]:
    """Yield the runs of writes that were removed, however long they are, each as one."""
    live = _by_replica(state.dots)
    for replica, end in state.context.bounds():
        if end > 0:
            for first, last in _between(live.get(replica, ()), end):
                yield replica, first, last
    beyond = _by_replica(dot for dot in state.context.cloud if dot not in state.dots)
    for replica, seqs in beyond.items():
        for _, run in groupby(enumerate(seqs), lambda pair: pair[1] - pair[0]):
            found = [seq for _, seq in run]
            yield replica, found[0], found[-1]


def _between(live: Sequence[int], end: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of 1 to `end` that lie between live writes, which are in order."""
    at = 1
    for seq in (*(seq for seq in live if seq <= end), end + 1):
        if at < seq:
            yield at, seq - 1
        at = seq + 1


def _by_replica(dots: Iterable[int]) -> dict[Replica, list[int]]:
    found: dict[Replica, list[int]] = {}
    for dot in sorted(dots):
        replica, seq = unpack(dot)
        found.setdefault(replica, []).append(seq)
    return found


def _context(known: Iterable[tuple[Replica, int, int]]) -> CausalContext:
    """Return the context of runs of writes, which may overlap."""
    context = CausalContext()
    for replica, runs in groupby(sorted(known, key=_order), lambda run: run[0]):
        first, last = 0, -1
        for _, begin, end in runs:
            if begin > last + 1:
                context |= _run(replica, first, last)
                first, last = begin, end
            last = max(last, end)
        context |= _run(replica, first, last)
    return context


def _run(replica: Replica, first: int, last: int) -> CausalContext:
    if not first:
        return CausalContext()
    return CausalContext.between(pack(replica, first), pack(replica, last))


def _order(run: tuple[Replica, int, int]) -> tuple[str, Replica, int]:
    replica, first, _ = run
    return replica.device, replica, first
