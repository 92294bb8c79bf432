"""The lake that the examples of `Lake` are about: two rooms, ten seconds, two devices."""

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from crdts import BoundedLWWSet, GSet
from lasp_edge import Program, folds, scans
from tests.cloud_tier.written_lakes import write

START_US = 1_767_600_000_000_000


def program():
    """Return the program of the lake."""
    made = Program("greenhouse")
    temperature = made.event("temperature", resolution="0.01", unit="°C")
    samples = made.declare_dynamic(BoundedLWWSet(bound=100), "samples")
    made.collect(temperature, into=samples)
    made.fold_dynamic(made.fold(samples, folds.mean(), "here"), "global_average")
    made.declare(GSet(), "opened")
    made.window(
        "temperature_by_room",
        source=temperature,
        fold=folds.mean(),
        size_s=60,
        key=lambda event: event.tags["room"],
    )
    risen = made.scan("risen", source=temperature, scan=scans.differences(), per_device=True)
    made.result(risen)
    return made.plan()


def example(root):
    """Return the root of the lake, with a window of two rooms, one of them revised."""
    plan, tables = program(), LakeTables(root)
    prepare(plan, tables)
    window = plan.windows["temperature_by_room"]
    rows = [("attic", 0, 2, 4350, "final"), ("cellar", 0, 1, 1200, "final")]
    rows.append(("attic", 1, 3, 6450, "revised"))
    write(
        tables.windows,
        [
            {
                "window": window.name,
                "key": key,
                "start_us": START_US,
                "end_us": START_US + 60_000_000,
                "devices_in": 1,
                "devices_expected": 2,
                "excluded": "",
                "status": status,
                "revision": revision,
                "frontier": START_US + 60_000_000 * (1 + revision),
                "stream": window.stream,
                "count": count,
                "total_q": total_q,
            }
            for key, revision, count, total_q, status in rows
        ],
    )
    return tables.root
