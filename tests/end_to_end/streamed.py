"""A program of meters, as agents, lander and job load it: what was used, and runs of a tap."""

from lasp_edge import Program, folds, scans

SPEC = "tests.end_to_end.streamed:program"
FIELDS = (
    *("--time", "ts", "--device-field", "device", "--event", "litres=litres"),
    *("--tag", "tap=tap", "--retract", "wrong"),
)

program = Program("meters")
litres = program.event("litres", resolution="0.5", unit="l")
used = program.scan(
    "used",
    source=litres,
    key=lambda event: event.tags["tap"],
    scan=scans.differences(reset=True),
    per_device=True,
)
program.result(used)
program.window("by_minute", source=used, fold=folds.sum(), size_s=60, key=lambda event: event.key)
flowing = program.filter(used, lambda event: event.value > 0, "flowing")
runs = program.scan(
    "runs",
    source=flowing,
    key=lambda event: event.key,
    scan=scans.sessions(gap_s=60, fold=folds.sum()),
    per_device=True,
)
program.result(runs)
