"""What a program's methods are given, as types: functions of users, sources, targets of folds."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from crdts import DerivedSet, GSet, ORMap, ORSet, TwoPSet
from lasp_edge.event import Event
from lasp_edge.folds.fold import Fold
from lasp_edge.generics import Given, Image, Value
from lasp_edge.language.declarations import EventType, Parameter, Stream
from lasp_edge.language.parameters import ParameterValues
from lasp_edge.language.updates import Update
from lasp_edge.variables import Variable

if TYPE_CHECKING:
    from lasp_edge.ordered.scan import Scan

Number = float | Decimal | Fraction
"""What a function of the user's can give where a number is needed."""

Level = float | str | Decimal | Fraction | Parameter[float]
"""A level of an alert: a number, decimal text, or a parameter."""

FoldFactory = Callable[[], Fold]
"""What makes a fold, such as `folds.mean`."""

FoldOf = Callable[[ParameterValues], Fold]
"""Gives the fold of the windows that start while parameters have these values."""

ScanOf = Callable[[ParameterValues], "Scan[Image]"]
"""Gives the scan that steps events while parameters have these values."""

ValueOf = Callable[[Event[Value]], Number] | Callable[[Event[Value], ParameterValues], Number]
"""Gives what a reading counts as in a window."""

Condition = Callable[[Event[Value]], bool] | Callable[[Event[Value], ParameterValues], bool]
"""Tells whether a reading counts in a window."""

Handler = Callable[[Given, Update], None]
"""A user's function `(event, update)`, or of what else it is given."""

Decorator = Callable[[Handler[Given]], Handler[Given]]
"""Registers a handler, and returns it."""

Source = EventType[Value] | Stream[Value] | str | Sequence[EventType[Value] | Stream[Value] | str]
"""An event or stream, or its name; a list of several is their union."""

SetVariable = Variable[GSet | ORSet | TwoPSet | ORMap | DerivedSet]
"""A shared set, or one that is derived from such."""
