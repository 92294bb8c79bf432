"""The regimes of a fleet: the meaning of all devices' panes under one log of parameters.

Devices without an entry of their own share their regimes; the others are scopes with regimes of
their own. An entry of a pane counts where its stream is the one that its device's regimes name
there, and nowhere else.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crdts import ControlLog
from crdts.control_log import FLEET
from lasp_edge.language.declarations import Window
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import PanePiece, WindowRegimes, difference


class StartSpan(NamedTuple):
    """The starts of a window from one to another, both included."""

    window: str
    first_us: int
    last_us: int


class FleetRegimes:
    """The windows of a program, under what operators set.

    Args:
        plan: of the program.
        log: the entries before; those of other parameters do not count.

    Attributes:
        windows: by name.
        changing: those that some parameter changes.
        parameters: those that operators can change.
        log: the entries of the parameters.
    """

    def __init__(self, plan: Plan, log: ControlLog | None = None) -> None:
        self.windows = dict(plan.windows)
        self.changing = {w.name: w for w in plan.windows.values() if not w.is_fixed}
        self.parameters = frozenset(plan.parameters)
        self._functions = plan.functions
        self._touched: list[StartSpan] = []
        self.log = ControlLog() if log is None else log.of_parameters(self.parameters)
        self._plan()

    @property
    def control(self) -> int:
        """The fingerprint of the log; 0 while it is empty."""
        return self.log.mark

    def take_touched(self) -> list[StartSpan]:
        """Return the starts that new entries have touched since the last time."""
        taken, self._touched = self._touched, []
        return taken

    def hear(self, entries: ControlLog) -> bool:
        """Join entries; return whether any of them was new."""
        if entries <= self.log:
            return False
        self.log |= entries
        before = self._regimes
        self._plan()
        found = self._touched
        for name in self.windows:
            every = sorted({scope for window, scope in (*before, *self._regimes) if window == name})
            for scope in every:
                old = before.get((name, scope)) or before[name, FLEET]
                new = self.of(name, scope)
                for pieces, regimes in (
                    (difference(old.pieces, new.pieces), old),
                    (difference(new.pieces, old.pieces), new),
                ):
                    longest_us = max(form.size_us for form in regimes.forms)
                    found += [
                        StartSpan(name, each.first_us - longest_us, each.end_us) for each in pieces
                    ]
                found += _reformed(name, old, new)
        return True

    def of(self, window: str, device: str = FLEET) -> WindowRegimes:
        """Return the regimes of a window, as a device has them."""
        return self._regimes.get((window, device)) or self._regimes[window, FLEET]

    def stream(self, stream: int) -> PanePiece | None:
        """Return a piece of a stream that some device may send; None for an unknown one."""
        found = self._streams.get(stream)
        return None if found is None else found[1]

    def window_of(self, stream: int) -> Window | None:
        """Return the window of a stream that some device may send."""
        found = self._streams.get(stream)
        return None if found is None else found[0]

    def piece_of(self, device: str, stream: int, pane_us: int) -> PanePiece | None:
        """Return the piece that a device's pane is in; None where it means nothing any more."""
        window = self.window_of(stream)
        if window is None:
            return None
        for piece in self.of(window.name, device).pieces:
            if piece.stream == stream and piece.first_us <= pane_us < piece.end_us:
                return piece
        return None

    def scopes(self, window: str) -> Sequence[str]:
        """Return the devices that have regimes of their own in a window, and "" for the others."""
        return self._scopes[window]

    def scope(self, stream: int, device: str) -> str:
        """Return the scope whose regimes give a device's panes of a stream their meaning."""
        window = self._streams[stream][0]
        return device if (window.name, device) in self._regimes else FLEET

    def _plan(self) -> None:
        self._regimes: dict[tuple[str, str], WindowRegimes] = {}
        self._scopes: dict[str, Sequence[str]] = {}
        self._streams: dict[int, tuple[Window, PanePiece]] = {}
        for name, window in self.windows.items():
            names = {each.name for each in window.controls.uses}
            scopes = {scope for parameter, scope in self.log.lanes() if parameter in names}
            self._scopes[name] = sorted({FLEET, *scopes})
            for scope in self._scopes[name]:
                made = WindowRegimes(window, self._functions, self.log, scope)
                self._regimes[name, scope] = made
                for piece in made.pieces:
                    self._streams[piece.stream] = (window, piece)


def _reformed(name: str, old: WindowRegimes, new: WindowRegimes) -> Iterator[StartSpan]:
    """Yield the starts whose windows have another form: longer, shorter, or not there any more."""
    if old.forms == new.forms:
        return
    marks = sorted({form.from_us for form in (*old.forms, *new.forms)})
    for first_us, last_us in zip(marks, [*marks[1:], new.forms[-1].until_us], strict=True):
        before, after = old.form_at(first_us), new.form_at(first_us)
        if (before.size_us, before.slide_us) != (after.size_us, after.slide_us):
            yield StartSpan(name, first_us, last_us)
