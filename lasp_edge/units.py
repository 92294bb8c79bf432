"""Units of time: all times are whole microseconds."""

from typing import Final

SECOND_US: Final = 1_000_000
"""A second in microseconds."""
