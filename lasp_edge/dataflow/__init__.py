"""Lasp's dataflow: variables that follow from others, incrementally and without waiting.

- `written`, `deriving`, `engine`: the three layers of a `Dataflow`: what is written, what follows
  from it by operators, and who waits for what
- `definition`: how a variable is derived
- `graph`, `network`: what is made from what, and how a change runs through it
- `relation`: elements with the writes that they follow from
- `nodes`, `operators`, `assigned`: what one step of a change does
- `thresholds`, `reads`, `watching`: who waits for what, and what may be waited for
- `oracle`: every variable by definition, recomputed
"""

from crdts import Sample
from lasp_edge.dataflow.definition import Definition
from lasp_edge.dataflow.engine import Dataflow
from lasp_edge.dataflow.oracle import Oracle
from lasp_edge.dataflow.reads import Read
from lasp_edge.dataflow.thresholds import at_least, at_most, cardinality, strict
from lasp_edge.dataflow.watching import News

__all__ = [
    "Dataflow",
    "Definition",
    "News",
    "Oracle",
    "Read",
    "Sample",
    "at_least",
    "at_most",
    "cardinality",
    "strict",
]
