"""Why results of a lake are behind, in one line for cron: since when, each cause, what to type."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cloud_tier.lake.coverage import DeviceState
from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US

MOST_DEVICES: Final = 20
"""Devices that are printed for people: as many as fit on a screen, those first that hold others."""
_FEW_COMMITS: Final = 20
"""Commits of `landing` that a job may have before it in the usual run: some seconds."""
_NO_MORE: Final = {DeviceState.DONE, DeviceState.RETIRED}

Found = Mapping[str, Any]
"""What `cloud_tier.lake.status.status` returns."""


def why_behind(found: Found, limit_s: float, now_us: int) -> str:
    """Return why results are not final up to a recent time, and what to do; empty if they are.

    Args:
        found: the status of the lake.
        limit_s: how far they may be behind, in seconds.
        now_us: the time, in microseconds since the epoch.
    """
    final_us = found["frontier"]["frontier_us"]
    if not _is_old(final_us, limit_s, now_us):
        return ""
    behind = "nothing is final yet"
    if final_us is not None:
        age_s = (now_us - final_us) // SECOND_US
        behind = f"results are final up to {_second(final_us)}, {age_s:,} s ago"
    causes = [*_done(found), *_processes(found, limit_s, now_us)] or [_devices(found)]
    return "; ".join([behind, *causes])


def _is_old(time_us: int | None, limit_s: float, now_us: int) -> bool:
    return time_us is None or now_us - time_us > limit_s * SECOND_US


def _done(found: Found) -> Iterator[str]:
    """Yield that no device has anything more, as at the end of a recording."""
    states = [each["state"] for each in found["frontier"]["devices"]]
    if states and _NO_MORE.issuperset(states) and not _waiting(found):
        are = "the only device is" if len(states) == 1 else f"all {len(states):,} devices are"
        done = "done or retired" if DeviceState.RETIRED in states else "done"
        yield f"{are} {done}, and all that they sent is merged: nothing more is to come"


def _processes(found: Found, limit_s: float, now_us: int) -> Iterator[str]:
    """Yield what is wrong with job and landers."""
    runs, lake = found["runs"], found["lake"]
    if runs["job"] is False and runs["lander"] is False and found["failure"] is None:
        yield (
            f"neither a job nor a lander runs on this machine ({_last(found)}): start "
            f"`lasp-edge cloud MODULE:PROGRAM --broker URL --lake {lake}`, which runs both"
        )
        return
    yield from _job(found)
    if _waiting(found) and runs["lander"] is not False:
        return  # what landed last is not merged, so its time is not known
    landed_us = max(
        (each["now_us"] for each in found["frontier"]["landers"].values()), default=None
    )
    if _is_old(landed_us, limit_s, now_us):
        last = "ever" if landed_us is None else f"since {_second(landed_us)}"
        yield f"nothing has landed {last}: {_of_lander(runs['lander'], lake)}"


def _job(found: Found) -> Iterator[str]:
    """Yield what is wrong with the job."""
    runs, failure, waiting = found["runs"]["job"], found["failure"], _waiting(found)
    start = f"start `lasp-edge cloud MODULE:PROGRAM --no-lander --lake {found['lake']}`"
    if failure is not None:
        times = f" {failure['times']:,} times" if failure["times"] else ""
        failed = f"failed{times} since {_second(failure['first_us'])}"
        if runs is False:
            yield f"the job {failed} and has ended ({failure['why']}): {start}"
        else:
            yield f"the job has {failed} and tries again: {failure['why']}"
    elif runs is False:
        yield f"no job runs on this machine ({_last(found)}): {start}"
    elif waiting > _FEW_COMMITS:
        yield f"the job has {waiting:,} commits still to merge: see its log"


def _last(found: Found) -> str:
    """Return when a job has merged last, and what waits."""
    merged, waiting = found["merged"], _waiting(found)
    if merged is None or merged["last_us"] is None:
        last = "none has ever merged into this lake"
    else:
        last = f"the last batch was merged at {_second(merged['last_us'])}"
    waits = "a commit waits" if waiting == 1 else f"{waiting:,} commits wait"
    return f"{last}, and {waits}" if waiting else last


def _waiting(found: Found) -> int:
    """Return how many commits of landers are known to wait for the job."""
    if found["merged"] is not None:
        return int(found["merged"]["commits_behind"])
    # Before the first batch all wait; of a lake that is elsewhere it is not known.
    return 0 if found["runs"]["job"] is None else int(found["tables"]["landing"]["version"])


def _second(time_us: int) -> str:
    """Return a time as people read it, without fractions of a second."""
    return f"{shown_time(time_us // SECOND_US * SECOND_US)} UTC"


def _of_lander(runs: bool | None, lake: str) -> str:  # noqa: FBT001 - None: unknown
    if runs is None:
        return "is `lasp-edge lander` running, and the broker?"
    if runs:
        return "a lander runs; its log says whether the broker answers and its disk has room"
    return (
        "no lander runs on this machine, so start "
        f"`lasp-edge lander MODULE:PROGRAM --broker URL --lake {lake}`"
    )


def _devices(found: Found) -> str:
    """Return which devices hold results up."""
    frontier, runs = found["frontier"], found["runs"]
    if held := frontier["held_by"]:
        why = f"they wait for {', '.join(held[:MOST_DEVICES])}: "
        if runs["lander"] is False:
            why += "no lander runs on this machine, so start `lasp-edge lander` unless one does on "
            why += "another; else "
        return why + "look at it, or `lasp-edge retire` it"
    if not frontier["devices"]:
        return "no device has reported: does an agent run with this broker and --fleet?"
    return "`lasp-edge lake status` shows more"
