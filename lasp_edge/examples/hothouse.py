"""A hothouse whose alarm and thermometers can be changed while it runs (`lasp-edge set`)."""

from lasp_edge import Program, folds

program = Program("hothouse")
temperature = program.event("temperature", resolution="0.01", unit="°C")

alarm_above = program.parameter("alarm_above", "28", resolution="0.1", unit="°C")
offset = program.parameter("offset", "0", resolution="0.01", unit="°C")

# How many readings of an hour were above the alarm, each corrected by the offset.
program.window(
    "hot",
    source=temperature,
    fold=folds.count(),
    size_s=3600,
    uses=(offset, alarm_above),
    value=lambda event, at: event.value + at[offset],
    where=lambda event, at: event.value > at[alarm_above],
)
