"""A window of every built-in fold that the other program has not.

Processes load it as `tests.end_to_end.spread:program` from the checkout.
"""

from lasp_edge import Program, folds

SPEC = "tests.end_to_end.spread:program"

program = Program("spread")
temp = program.event("temp", resolution="0.01", unit="°C")

spread = folds.struct(
    deviation=folds.stddev(),
    variance=folds.variance(population=True),
    first=folds.first(),
    last=folds.last(),
    bins=folds.histogram([20, "22.5", 25]),
    quantile=folds.quantile(0.5, 0.99),
    distinct=folds.distinct(),
    top=folds.top(3),
    any=folds.any(),
    all=folds.all(),
)
program.window(
    "spread_by_device",
    source=temp,
    fold=spread,
    size_s=600,
    slide_s=300,
    key=lambda event: event.device,
)

FIELDS = ["--time", "ts", "--device-field", "device", "--event", "temp=data.temp"]
"""How the lines of the recorded data become this program's readings."""
