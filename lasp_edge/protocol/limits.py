"""Every limit that devices, landers and simulations share: what lies beyond it is refused.

All readers of a frame must refuse the same ones, or they would hold different states for ever. So
each limit stands here once, and `lasp_edge.protocol.admission` turns it into a rule. Limits of
sizes are in `lasp_edge.protocol.sizes`.
"""

from typing import Final

DAY_US: Final = 86_400_000_000
"""A day in microseconds."""

TIME_LIMIT_US: Final = 2**58
"""Microseconds from the epoch that no time in a frame reaches: 9,000 years, and a sum of two still
fits into 64 bits."""

EARLIEST_PANE_US: Final = -25_567 * DAY_US
"""Start of the year 1900: no sensor has measured before, and the lake's dates begin here."""

LATEST_PANE_US: Final = 2_932_896 * DAY_US
"""End of the year 9999, the last one that a date of the lake can have."""

LATEST_CLOCK_S: Final = 2**32
"""Seconds since the epoch that no clock reaches: a day in the year 2106."""

FUTURE_US: Final = DAY_US
"""Microseconds that a pane or promise may lie ahead of the lander's clock, beyond the length of the
longest window: a clock that is set to the wrong time zone is at most a day ahead."""

INCARNATIONS_AHEAD: Final = 1 << 10
"""Starts of a device by which a frame's incarnation may exceed the known one: a device that starts
again each minute needs 17 hours for as many. A greater jump is a stranger's, and would make all
that the device sends later look old. It is believed only of a life that goes on to speak."""

INCARNATIONS_BELIEVED: Final = 1 << 29
"""No greater jump leads to an incarnation from here on: half of all are left to become later than
a stranger's."""

CONTROLS_AHEAD: Final = 1 << 10
"""Commands by which a member command's number may exceed the known one; a greater jump would use up
the numbers, so that no operator could ever override it."""

CLOCK_NUMBERS: Final = 1 << 32
"""Numbers of commands up to which none is too far ahead: an operator's command has at least the
number of seconds of its clock, until 2106, so it overrides older ones that the operator did not
receive."""

MEMBERS: Final = 10_000
"""Devices that a device knows, and on which commands are remembered, at most: a bound on memory
that strangers could fill, and on the names that they could invent to count."""

LANDED_DEVICES: Final = 1_000_000
"""The same of a lander, which has more memory and may serve a larger fleet."""

NEVER: Final = "never"
"""In place of seconds: no clock gets there."""
NEVER_US: Final = 1 << 62
"""The same in microseconds."""
