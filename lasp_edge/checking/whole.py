"""The run of a whole program, which the package of simulations brings.

What users declare, and how its laws are checked, knows no agent. So an entry point is looked up.
"""

from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.metadata import EntryPoint, entry_points
from io import StringIO

from lasp_edge.checking.growth import growing, kept_by_value
from lasp_edge.checking.readings import WORDS
from lasp_edge.checking.streams import title, tried_streams
from lasp_edge.checking.trial import Findings, tried
from lasp_edge.errors import EnvironmentLacks
from lasp_edge.language.plan import Plan

GROUP = "lasp_edge.fleets"
"""The entry points of what runs a virtual fleet."""


def fleet_entry(name: str) -> EntryPoint:
    """Return an entry point of the virtual fleet.

    Raises:
        EnvironmentLacks: another release of the package is installed than is run.
    """
    for point in entry_points(group=GROUP, name=name):
        return point
    raise EnvironmentLacks(
        f"the entry point {name} of {GROUP} is not installed", "pip install --no-deps -e ."
    )


def all_tried(
    plan: Plan,
    tags: Mapping[str, str] | None = None,
    program: str = "",
    *,
    is_lawful: bool = True,
) -> Findings:
    """Return the findings of running a program: each function by itself, then the whole.

    Args:
        plan: of a program whose functions can be called (see `handlers.uncallable`).
        tags: of the made-up readings; None: whatever functions ask for.
        program: `MODULE:program`, for another process to load; "": it is not run elsewhere.
        is_lawful: its folds keep the laws; the whole of another one gives what nobody can tell.
    """
    found = tried(plan, tags)
    if plan.streams:
        tried_streams(plan, tags, found)
    grows = growing(plan) if not found.wrong else []
    if is_lawful and not found.wrong:
        point = fleet_entry("whole")
        asked = {event: set(each) for event, each in found.tags.items()}
        with redirect_stdout(StringIO()):
            whole: Findings = point.load()(plan, asked, tags, program)
        found.wrong += whole.wrong
        found.doubts += [each for each in whole.doubts if each not in found.doubts]
        found.reached |= whole.reached
        for event, rare in whole.tags.items():
            found.tags[event] = found.tags.get(event, {}) | rare
        found.spare_tags = {
            event: spare - found.tags.get(event, {}).keys()
            for event, spare in whole.spare_tags.items()
        }
    found.doubts += _unreached(plan, found) + _alike(found)
    if found.wrong or found.doubts:
        found.doubts += _of_texts(plan)
    found.doubts += grows
    if plan.streams and not (grows or found.wrong):
        found.costs += kept_by_value(plan)
    return found


def _unreached(plan: Plan, found: Findings) -> list[str]:
    """Return a line for each stream that had no item, neither alone nor in the whole."""
    reached = [each.source.name for name, each in plan.windows.items() if name in found.reached]
    reached += found.reached & plan.streams.keys()
    for name in reached:  # grows meanwhile
        reached += plan.streams[name].sources if name in plan.streams else ()
    left = [name for name in found.unreached if name not in reached]
    return [f"{title(plan, name)}: nothing made-up reaches it" for name in left]


def _alike(found: Findings) -> list[str]:
    """Return a line for each two tags of one event that differ by case or blanks alone."""
    lines = []
    for event in found.tags.keys() | found.spare_tags.keys():
        names = {*found.tags.get(event, ()), *found.spare_tags.get(event, ())}
        spelt: dict[str, list[str]] = {}
        for name in sorted(names):
            spelt.setdefault("".join(name.split()).casefold(), []).append(name)
        lines += [
            f"functions ask readings of {event} for the tags {' and '.join(map(repr, same))}, "
            "which differ by case or blanks alone: write one of them"
            for same in spelt.values()
            if len(same) > 1
        ]
    return sorted(lines)


def _of_texts(plan: Plan) -> list[str]:
    """Return a line for each event whose texts are made up: perhaps others come."""
    return [
        f"the readings of {name!r} are made-up texts, such as {WORDS[0]!r}; if others come, say "
        f'which: event("{name}", text=True, examples=[..])'
        for name, event in plan.events.items()
        if event.text and not event.examples
    ]
