"""What fleets send, as rows of `landing`: made in bulk, and nothing of it drawn at random."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cloud_tier.lake.tables import ABSENT, landed_schema
from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.shards import key_shard

SPAN_US = 10_000_000
BEGIN_US = 1_700_000_000_000_000
"""A multiple of a pane."""
STEP_US = 2_000_000
PANES = 8
"""Pane rows of a device in a step: it was offline for a while, or sends some windows' panes."""


def greenhouse(*, keyed: bool = False) -> Plan:
    """Return the program: a mean by room each ten seconds, and a fleet-wide one."""
    made = Program("benchmark")
    event = made.event("temperature", resolution="0.01")
    key = (lambda event: event.tags["room"]) if keyed else None
    samples = made.declare_dynamic(BoundedLWWSet(bound=100), "samples", key=key)
    made.collect(event, into=samples)
    made.fold_dynamic(made.fold(samples, folds.mean(), "here"), "everywhere")
    made.window("by_room", source=event, fold=folds.mean(), size_s=60, slide_s=10, key=lambda _: "")
    return made.plan()


def landed(made: Plan, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows of `landing`."""
    schema = landed_schema(made.columns)
    columns = {name: [row.get(name, ABSENT.get(name)) for row in rows] for name in schema.names}
    return pa.table(columns, schema=schema)


def fleet_rows(made: Plan, number: int, devices: int) -> Iterator[dict[str, Any]]:
    """Yield what a fleet sends in one step: panes, a variable and a promise of each device."""
    window, local = made.windows["by_room"], made.published_folds["here"]
    now_us = BEGIN_US + number * STEP_US
    for device in range(devices):
        own = {"device": f"pi-{device}", "incarnation": 1, "nonce": 7, "received_us": now_us}
        seq = number * (PANES + 2)
        for pane in range(PANES):
            seq += 1
            yield own | {
                "kind": "pane",
                "stream": window.stream,
                "key": f"room {device % 7}",
                "pane_us": (now_us // SPAN_US - pane % 4) * SPAN_US,
                "seq": seq,
                "count": 1 + number % 5,
                "total_q": 1_000 * number + device,
            }
        yield own | {
            "kind": "variable",
            "stream": local.stream,
            "key": "",
            "seq": seq + 1,
            "changed": seq + 1,
            "count": 100,
            "total_q": 100 * number + device,
        }
        yield own | {"kind": "promise", "seq": seq + 2, "low_us": now_us - STEP_US, "done": False}
    yield lander_tick(number, now_us)


def keyed_rows(made: Plan, number: int, keys: int, changing: int) -> Iterator[dict[str, Any]]:
    """Yield what one device sends of whose keys some change: each shard of them, whole."""
    local = made.published_folds["here"]
    version = {"incarnation": 1, "nonce": 7, "seq": number * changing + changing}
    now_us = BEGIN_US + number * STEP_US
    names = [f"room {key}" for key in range(keys)]
    first = number * changing % keys
    changed = {names[(first + at) % keys] for at in range(changing)} if number else set(names)
    shards = {key_shard(name) for name in changed}
    for at, name in enumerate(names):
        if key_shard(name) in shards:
            # The step in which this key last changed, when the keys change in turn.
            last = number - (first + changing - 1 - at) % keys // changing if number else 0
            yield version | {
                "kind": "variable",
                "device": "pi-0",
                "received_us": now_us,
                "stream": local.stream,
                "shard": key_shard(name),
                "key": name,
                "changed": 1 + max(0, last) * changing,
                "count": 10,
                "total_q": max(0, last) * 100 + at,
            }
    yield lander_tick(number, now_us)


def lander_tick(number: int, now_us: int) -> dict[str, Any]:
    """Return a tick of the lander."""
    clock = {"now_us": now_us, "since_us": BEGIN_US - 3_600_000_000, "received_us": now_us}
    return {"kind": "tick", "lander": "benchmark", "seq": number + 1, **clock}
