"""Functions of numbers whose last digits depend on the machine: no standard defines them.

>>> rounded("math", "log")
'it is rounded differently from machine to machine; Decimal has one that is not'
>>> rounded("math", "sqrt"), rounded("numpy", "mean").partition("; ")[2]
('', 'math.fsum and statistics.fmean are not')
"""

from typing import Final

_CIRCULAR = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "degrees", "radians", "hypot")
_HYPERBOLIC = ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "dist")
_EXPONENTIAL = ("exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "pow", "cbrt")
_SPECIAL = ("erf", "erfc", "gamma", "lgamma")
_TRANSCENDENTAL: Final = frozenset((*_CIRCULAR, *_HYPERBOLIC, *_EXPONENTIAL, *_SPECIAL))
_SUMS: Final = frozenset(
    ("average", "cumsum", "dot", "einsum", "matmul", "mean", "nanmean", "std", "sum", "var")
)
"""Of numpy, which adds up by as many numbers at once as the machine can."""
_BY_MODULE: Final = {
    "math": _TRANSCENDENTAL,
    "numpy": _TRANSCENDENTAL | _SUMS,
    "operator": frozenset({"pow", "ipow"}),
}
_DIFFERS = "it is rounded differently from machine to machine"


def rounded(module: str, name: str) -> str:
    """Return why what a function gives is rounded by the machine; empty text where it is not."""
    if module != "cmath" and name not in _BY_MODULE.get(module, ()):
        return ""
    if module == "numpy" and name in _SUMS:
        return f"{_DIFFERS}; math.fsum and statistics.fmean are not"
    return f"{_DIFFERS}; Decimal has one that is not"
