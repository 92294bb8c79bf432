"""The checks (f) and (g): rows of windows before they were final, and revisions after it."""

from collections import Counter
from collections.abc import Iterator

from lasp_edge.language.declarations import Window
from lasp_edge.protocol.status import FINAL, REVISED, TENTATIVE
from simulations.demo.evidence import Evidence, Finding, Row, differs, holds, newest
from simulations.demo.settings import Setting

USUAL_S = 5.0
"""Seconds, at most, until a reading has reached the gateway if nothing fails."""
AGAIN_S = 5.0
"""Seconds until a device sends again what a gateway that was killed has not acknowledged."""
_EXAMPLES = 2


def waiting_finding(evidence: Evidence, wait_s: float) -> Finding:
    """Return whether windows waited for absent devices, for X and no longer, and are final now."""
    away_s, merger_s = evidence.away_s, evidence.merger_away_s
    reached_s = USUAL_S + (merger_s + AGAIN_S if merger_s else 0.0)
    tentative = [
        (name, row)
        for name, row in _rows(evidence)
        if row["status"] == TENTATIVE and row["end_us"] > evidence.complete_us
    ]
    missed = {
        device
        for _, row in tentative
        for device in row["excluded"].split(",")
        if not any(_rebuilds(setting, device, row) for setting in evidence.settings)
    }
    finals = Counter(_place(name, row) for name, row in _rows(evidence) if row["status"] == FINAL)
    current = (newest(rows, "key", "start_us") for rows in evidence.windows.values())
    unfinished = sum(row["status"] == TENTATIVE for rows in current for row in rows)
    away = {name: f"{name} was away for {seconds:.0f} s" for name, seconds in away_s.items()}
    wrong = [
        f"windows that wait for {wait_s:g} s were shown too early: {away.get(device, 'nobody')}"
        for device in sorted(missed)
        if away_s.get(device, 0.0) + reached_s < wait_s
    ]
    wrong += [f"became final twice: {place}" for place, times in finals.items() if times > 1]
    wrong += [f"not final: {_count(unfinished)}"] * bool(unfinished)
    if wrong:
        return differs("; ".join(wrong[:_EXAMPLES]))
    text = "none was shown as tentative"
    if missed:
        shown = _count(len({_place(name, row) for name, row in tentative}))
        text = f"{', '.join(away[name] for name in sorted(missed))}: {shown} shown as tentative"
    return holds(f"windows wait {wait_s:g} s for a device; {text}. Each became final once")


def settings_finding(evidence: Evidence) -> Finding:
    """Return whether the operator's settings revised the windows that they touch, each once."""
    revised = Counter(
        _place(name, row) for name, row in _rows(evidence) if row["status"] == REVISED
    )
    late = [setting for setting in evidence.settings if setting.is_late]
    names = ", ".join(each.parameter for each in evidence.settings if not each.is_late)
    wrong = [f"{times} times: {place}" for place, times in revised.items() if times > 1]
    wrong += [
        f"though no setting touches it: {_place(name, row)}"
        for name, row in _rows(evidence)
        if row["status"] == REVISED
        and not any(_touches(setting, evidence.plan.windows[name], row) for setting in late)
    ]
    if wrong:
        return differs(f"revised {'; '.join(wrong[:_EXAMPLES])}")
    early = f"{names}, set for later, revised nothing; " * bool(names)
    devices = ", ".join(f"{setting.parameter} of {setting.device}" for setting in late)
    done = f"{_count(len(revised))}, each once" if revised else "no window that was final"
    return holds(f"{early}{devices}, set for the past, revised {done}")


def _count(windows: int) -> str:
    return "1 window" if windows == 1 else f"{windows:,} windows"


def _rebuilds(setting: Setting, device: str, row: Row) -> bool:
    """Return whether a device builds panes again: until then it promises no window after them."""
    return setting.is_late and device == setting.device and row["end_us"] > setting.from_us


def _touches(setting: Setting, window: Window, row: Row) -> bool:
    """Return whether a setting can change a window."""
    used = setting.parameter in {each.name for each in window.controls.parameters}
    begins = setting.until_us is None or row["start_us"] < setting.until_us
    return used and begins and row["end_us"] > setting.from_us


def _rows(evidence: Evidence) -> Iterator[tuple[str, Row]]:
    """Yield all revisions with the names of their windows."""
    for name, rows in evidence.windows.items():
        for row in rows:
            yield name, row


def _place(name: str, row: Row) -> tuple[str, str, int]:
    return name, row["key"], row["start_us"]
