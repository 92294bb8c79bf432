"""The program whose answers to real data the reference files hold."""

from crdts import BoundedLWWSet
from lasp_edge import Program, folds

SUMMARY = {"count": folds.count(), "total": folds.sum(), "min": folds.min(), "max": folds.max()}


def temperatures(bound=100):
    """Return the plan of that program."""
    return declared(bound).plan()


def declared(bound=100):
    """Return the program itself, so that a test may declare more."""
    program = Program("greenhouse")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=bound), "samples")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    program.fold_dynamic(program.fold(samples, folds.struct(**SUMMARY), "last"), "fleet")
    for name, size_s, slide_s in (("minute", 60, 10), ("uneven", 50, 20)):
        program.window(
            name,
            source=temperature,
            fold=folds.struct(**SUMMARY),
            size_s=size_s,
            slide_s=slide_s,
        )
    return program
