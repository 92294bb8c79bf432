"""A program with a window by room, for whatever prints or draws its rows."""

from lasp_edge import Program, folds


def house():
    """Return a plan: the mean of each room and ten seconds."""
    program = Program("house")
    warm = program.event("warm", resolution="0.1", unit="°C")
    program.window("by_room", source=warm, fold=folds.mean(), size_s=10, key=lambda e: e.tags["r"])
    return program.plan()
