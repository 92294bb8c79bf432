"""The talk's own listing (slide 30): everything is declared first, then bound together.

It means the same as the shorter form in `greenhouse`. A declared target is derived all the same:
it is assigned from its inputs and never joined.

Source: Meiklejohn, Haeri and Van Roy, "Declarative Sliding-Window Aggregations for Computations at
the Edge", talk at EdgeCom 2016, slide 30.
"""

from crdts import BoundedLWWSet, Counter, Pair
from lasp_edge import Event, Program, Update, folds

program = Program("talk")
temperature = program.event("temperature", resolution="0.01", unit="°C")

samples = program.declare_dynamic(BoundedLWWSet(bound=100), "samples")
local_average = program.declare_dynamic(Pair(Counter(), Counter()), "local_average")
global_average = program.declare(Pair(Counter(), Counter()), "global_average")


@program.on_event(temperature)
def sampled(event: Event, update: Update) -> None:
    """Keep the reading."""
    update(samples, ("add", event.value, event.time_us))


program.fold(samples, folds.mean, local_average)
program.fold_dynamic(local_average, folds.mean, global_average)
