"""The variables of generic types, with what a type checker takes where a user names no type.

Defaults of type variables are known to type checkers, and to Python from 3.13 on.
"""

from typing import TYPE_CHECKING, Any

from crdts import Lattice

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Number_co = TypeVar("Number_co", default=float, covariant=True)
    Value = TypeVar("Value", default=Any)
    Value_co = TypeVar("Value_co", default=Any, covariant=True)
else:
    from typing import TypeVar

    Number_co = TypeVar("Number_co", covariant=True)
    Value = TypeVar("Value")
    Value_co = TypeVar("Value_co", covariant=True)

Given = TypeVar("Given")
Image = TypeVar("Image")
State = TypeVar("State", bound=Lattice)
