"""Sets that a program derives from shared sets, and handlers of the thresholds that they reach."""

from typing import TYPE_CHECKING, Any

from crdts import DerivedSet, Lattice
from lasp_edge.generics import State
from lasp_edge.language.arguments import need_function
from lasp_edge.language.draft import Draft
from lasp_edge.language.signatures import Decorator, Handler, SetVariable
from lasp_edge.variables import Variable

if TYPE_CHECKING:
    from lasp_edge.dataflow.thresholds import Threshold
    from lasp_edge.language.derivations import Derivations


class DerivedSets:
    """The methods of a program that derive sets, and wait for them."""

    _draft: Draft
    _derivations: "Derivations | None"

    def intersection(
        self, left: SetVariable, right: SetVariable, name: str
    ) -> Variable[DerivedSet]:
        """Derive the elements that are in both sets. Arguments as for `map`.

        >>> from crdts import ORSet
        >>> from lasp_edge import Program
        >>> program = Program("doors")
        >>> left, right = program.declare(ORSet(), "left"), program.declare(ORSet(), "right")
        >>> program.intersection(left, right, "both")
        the variable 'both'
        """
        return self._derived_sets().derive(name, "intersection", (left, right), None, 1)

    def product(self, left: SetVariable, right: SetVariable, name: str) -> Variable[DerivedSet]:
        """Derive all pairs of an element of either set, left first. Arguments as for `map`.

        >>> from crdts import ORSet
        >>> from lasp_edge import Program
        >>> program = Program("doors")
        >>> left, right = program.declare(ORSet(), "left"), program.declare(ORSet(), "right")
        >>> program.product(left, right, "pairs")
        the variable 'pairs'
        """
        return self._derived_sets().derive(name, "product", (left, right), None, 1)

    def bind_to(self, name: str, source: Variable[State]) -> Variable[State]:
        """Derive what `source` is under a name of its own; `source` is any shared variable.

        >>> from crdts import ORSet
        >>> from lasp_edge import Program
        >>> program = Program("doors")
        >>> program.bind_to("rooms", program.declare(ORSet(), "opened"))
        the variable 'rooms'
        """
        return self._derived_sets().derive(name, "bind_to", (source,), None, 1)

    def on_threshold(
        self, variable: Variable | str, threshold: "Threshold | Lattice | None" = None
    ) -> Decorator[Any]:
        """Decorate a handler `(value, update)` that runs when a variable reaches a threshold.

        It runs once after each start of a device, on every device, with the value that it reached.
        So what it asks for should be right when it is asked for again, such as adding to a set.

        >>> from crdts import GSet
        >>> from lasp_edge import Program
        >>> from lasp_edge.dataflow import cardinality
        >>> program = Program("doors")
        >>> rooms, notices = program.declare(GSet(), "rooms"), program.declare(GSet(), "notices")
        >>> @program.on_threshold(rooms, cardinality(3))
        ... def three(seen, update):
        ...     update(notices, GSet.add, f"doors of {len(seen)} rooms were opened")

        Args:
            variable: a shared variable, or one that is derived from such.
            threshold: as for `Dataflow.read`; None waits until something was written.

        Raises:
            ValueError: the variable could fall below the threshold again.
        """
        awaited = self._derived_sets().awaited(variable, threshold)

        def register(handler: Handler[Any]) -> Handler[Any]:
            need_function(handler, "on_threshold", "(value, update)")
            self._draft.awaited.append(awaited)
            self._draft.reached.append(handler)
            return handler

        return register

    def _derived_sets(self) -> "Derivations":
        """Return the program's derivations; the first time imports the dataflow engine."""
        if self._derivations is None:
            from lasp_edge.language.derivations import Derivations  # noqa: PLC0415

            self._derivations = Derivations(self._draft)
        return self._derivations
