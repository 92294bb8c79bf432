"""The agent's line for a person: what it measured, what it refused and why, and who agrees."""

from collections.abc import Mapping
from typing import Any

from device_agent.acting.alerts import words_of


def line_of(report: Mapping[str, Any]) -> str:
    """Return a report as one line."""
    words = [f"{report['device']}: {report['accepted']} readings", *_not_accepted(report)]
    words += [f"{name}: {_in_words(value)}" for name, value in report["values"].items()]
    words += words_of(report["alerts"])
    clock = report["clock"]
    if clock["says"]:
        words.append(clock["says"])
    if clock["waiting"]:
        words.append(f"{clock['waiting']} readings wait for the clock")
    trouble = report.get("trouble")
    words.append("connected" if report["connected"] else "no connection")
    words[-1] += f" ({trouble})" if trouble else ""
    if report["other_programs"]:
        words.append(f"ANOTHER PROGRAM OR RELEASE: {', '.join(report['other_programs'])}")
    words += [f"SET ASIDE: {line}" for line in report["set_aside"]]
    return "; ".join(words)


def nothing_accepted(report: Mapping[str, Any]) -> str:
    """Return why an agent that is done has no reading; an empty text where it has some."""
    if report["accepted"]:
        return ""
    reasons = _not_accepted(report) or ["the sources gave none"]
    return f"no reading was accepted: {'; '.join(reasons)}"


def _not_accepted(report: Mapping[str, Any]) -> list[str]:
    words = []
    if report["refused"]:
        words.append(f"{report['refused']} refused: {report['refused_for']}")
    if report["too_late"]:
        words.append(f"{report['too_late']} too late (--retain-days)")
    if report["in_the_future"]:
        ahead = "ahead of this machine's clock; is it right (date), and the --time-zone?"
        words.append(f"{report['in_the_future']} refused: {ahead}")
    return words


def _in_words(value: Mapping[str, Any]) -> str:
    if "keys" in value:
        text = f"{len(value['keys'])} keys"
    else:
        text = ", ".join(f"{part} {_short(number)}" for part, number in value["parts"].items())
    if "settled" not in value:
        return text
    text += f" over {value['devices']} device{'' if value['devices'] == 1 else 's'}"
    if value["except"]:
        return f"{text} (not reached: {', '.join(value['except'])})"
    if not value["settled"]:
        return text
    return f"{text} ({'alone' if value['devices'] == 1 else 'agreed'})"


def _short(number: float | None) -> str:
    return "-" if number is None else f"{number:.6g}"
