"""The line that an agent prints for people now and then: readings, values and problems.

Each part is a present state, problems with their reason. Lists that can grow without end, such as
the names of devices that are away, are cut after the first few.

    >>> named(["attic", "cellar", "garage", "kitchen", "shed"])
    'attic, cellar, garage and 2 more'
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lasp_edge.language.plan import Plan
from lasp_edge.link.trouble import CONNECTING
from lasp_edge.tool.screen import ago

_ENDS = "it ends when all are taken; Ctrl-C ends it before, and its next start sends them"
MOST_NAMES = 3
"""Names that stand in a line, at most; `lasp-edge members` prints all."""


def write_plainly(report: Mapping[str, Any]) -> None:
    """Print a report for a person, on one line."""
    print(line_of(report), flush=True)  # noqa: T201


def write_until_done(report: Mapping[str, Any], plan: Plan) -> None:
    """Print the same of an agent that ends when all is landed, and for what it waits."""
    print("; ".join([line_of(report), *waits_for(report, plan)]), flush=True)  # noqa: T201


def waits_for(report: Mapping[str, Any], plan: Plan) -> list[str]:
    """Return why an agent that ends when all is landed has not ended, and until when."""
    if scans := [name for name, each in plan.streams.items() if each.local]:
        why = f"gateways may ask for readings that stay here (local= of {', '.join(scans)})"
        return [f"--exit-when-done does not end it: {why}; Ctrl-C does"]
    found = _waiting(report, plan)
    return [*found, _ENDS] if found else []


def _waiting(report: Mapping[str, Any], plan: Plan) -> list[str]:
    """Return which entries have not landed, and why."""
    sinks: Mapping[str, Any] = report["sinks"]
    kinds = ["windows"] * bool(plan.windows) + ["results"] * bool(plan.stream_results)
    entries = f"entries of {' and '.join(kinds)}" if kinds else "entries"
    if report["dirty"] and not any(sink["store"] for sink in sinks.values()):
        waiting = f"{report['dirty']} {entries} wait for a lander"
        if plan.windows or plan.fleet_results:
            return [f"{waiting} or gateway, and neither was heard yet (lasp-edge gateway --help)"]
        return [f"{waiting}, and none was heard yet (lasp-edge lander --help)"]
    return [line for sink in sinks.items() for line in _waiting_for(*sink, entries)]


def _waiting_for(name: str, sink: Mapping[str, Any], entries: str) -> Iterator[str]:
    """Yield what a sink has not taken, and why."""
    refused: Mapping[str, int] = sink.get("not_taken", {})
    for reason, count in refused.items():
        yield f"{count} {entries} not taken by {name}: {reason}"
    unanswered = sink["waiting"] - sum(refused.values())
    if unanswered:
        yield f"{unanswered} {entries} wait for {name} to answer"


def line_of(report: Mapping[str, Any]) -> str:
    """Return a report as one line."""
    count = report["accepted"]
    words = [f"{report['device']}: {count} reading{'' if count == 1 else 's'}", *_refused(report)]
    for name, value in report["values"].items():
        agreed = f" {_over(name, value, report)}" if "settled" in value else ""
        words.append(f"{name}: {_in_words(value)}{agreed}")
    words += _alerts(report.get("alerts", {}))
    clock = report["clock"]
    if clock["says"]:
        words.append(clock["says"])
    if clock["waiting"]:
        words.append(f"{clock['waiting']} readings wait for the clock")
    if report["silent_source"]:
        words.append(f"windows wait for the source {report['silent_source']}, which is silent")
    if ended := report["ended"]:
        words.append(f"{named(ended)}: read to the end")
    words.append(_connection(report["connected"], report.get("trouble") or ""))
    if report["other_programs"]:
        words.append(f"ANOTHER PROGRAM OR RELEASE: {named(sorted(report['other_programs']))}")
    words += [f"NOTICE: {line}" for line in report["notices"][:MOST_NAMES]]
    words += [f"SET ASIDE: {line}" for line in report["set_aside"]]
    words += [f"ALARM: {line}" for line in report["alarms"]]
    return "; ".join(words)


def _connection(connected: bool, trouble: str) -> str:  # noqa: FBT001 - as the report has it
    if not connected and trouble in {"", CONNECTING}:
        return "connecting"
    words = "connected" if connected else "no connection"
    return f"{words} ({trouble})" if trouble else words


def nothing_accepted(report: Mapping[str, Any]) -> str:
    """Return why an agent that has read everything has no reading; an empty text if it has one."""
    if report["accepted"]:
        return ""
    return f"no reading was accepted: {', '.join(_refused(report)) or 'the sources gave none'}"


def named(names: Sequence[str]) -> str:
    """Return names, the first few of them."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"


def _alerts(alerts: Mapping[str, Any]) -> list[str]:
    """Return the alerts that are on, each in words."""
    found = []
    for name, alert in alerts.items():
        for each in alert["keys"].values() if "keys" in alert else (alert,):
            where = f" ({each['key']})" if each.get("key") else ""
            if each["state"] == "on":
                found.append(f"ALERT: {name}{where}, {each['part']} was {each['value']:.6g}")
    return found


def _refused(report: Mapping[str, Any]) -> list[str]:
    reasons: Mapping[str, int] = report["refused_because"]
    if not reasons:
        return []
    first, *others = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    more = f" and {len(others)} more reasons" if len(others) > 1 else ""
    more = " and one more reason" if len(others) == 1 else more
    return [f"{sum(reasons.values())} refused: {first}{more}"]


def _over(name: str, value: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Return over how many devices a value is, and how far they agree."""
    devices, absent = value["devices"], value["except"]
    over = f"over {devices} device{'' if devices == 1 else 's'}"
    without = f", without {named(absent)}" if absent else ""
    if not report["connected"]:
        return f"{over} (as last heard)" if devices > 1 else over
    if not report["others"]:
        return f"{over} (alone{without})"
    if value["settled"]:
        return f"{over} (agreed{without})"
    last_s = report["agreed_s_ago"].get(name)
    agreed = "not agreed yet" if last_s is None else f"last agreed {ago(last_s)} ago"
    return f"{over} ({'still changing, ' if name in report['changing'] else ''}{agreed})"


def _in_words(value: Mapping[str, Any]) -> str:
    if "keys" in value:
        return f"{len(value['keys'])} keys"
    return ", ".join(f"{part} {_short(number)}" for part, number in value["parts"].items())


def _short(number: Any) -> str:
    if number is None:
        return "-"
    return f"{number:.6g}" if isinstance(number, int | float) else str(number)
