"""Why results of a lake are behind, in one line for cron: since when, each cause, what to type.

What is known of devices is as of the last merge. So no device is named while the job or the landers
are what stands still.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cloud_tier.lake.coverage import DeviceState
from cloud_tier.lake.definitions import retire_command
from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US

MOST_DEVICES: Final = 20
"""Devices that are printed for people: as many as fit on a screen, those first that hold others."""
_FEW_COMMITS: Final = 20
_SOON_S: Final = 120
"""How many commits of `landing` a job may have before it, and for how many seconds: a step takes
some seconds, and a start of Spark half a minute."""
_FIRST_S: Final = 300
"""In seconds: how long a job's first batch may take, a start of Spark with it, until somebody is to
look; as in the alert JobStandsStill."""
_NO_MORE: Final = {DeviceState.DONE, DeviceState.RETIRED}

Found = Mapping[str, Any]
"""What `cloud_tier.lake.status.status` returns."""


def why_behind(found: Found, limit_s: float, now_us: int) -> str:
    """Return why results are not final up to a recent time, and what to do.

    Empty if they are, or if nothing more is to come. Where nothing is final yet, they are behind as
    long as there is a lake.

    Args:
        found: the status of the lake.
        limit_s: how far they may be behind, in seconds.
        now_us: the time, in microseconds since the epoch.
    """
    final_us = found["frontier"]["frontier_us"]
    since_us = found["made_us"] if final_us is None else final_us
    if not _is_old(since_us, limit_s, now_us) or finished(found):
        return ""
    behind = "nothing is final yet"
    if final_us is not None:
        age_s = (now_us - final_us) // SECOND_US
        behind = f"results are final up to {_second(final_us)}, {age_s:,} s ago"
    first = first_batch(found)
    why = processes(found, limit_s, now_us) or [f"the job is {first}" if first else _devices(found)]
    return "; ".join([behind, *why])


def _is_old(time_us: int | None, limit_s: float, now_us: int) -> bool:
    return time_us is None or now_us - time_us > limit_s * SECOND_US


def finished(found: Found) -> str:
    """Return that nothing more is to come, as at the end of a recording; empty if more may."""
    done, merged = _done(found), found["merged"]
    if not done or (waiting(found) if merged is None else merged["has_data"]):
        return ""
    return f"{done}, and all that they sent is merged: nothing more is to come"


def processes(found: Found, limit_s: float, now_us: int) -> list[str]:
    """Return what is wrong with job and landers; nothing in a lake that is finished.

    Args:
        found: the status of the lake.
        limit_s: for how many seconds landers may land nothing.
        now_us: the time, in microseconds since the epoch.
    """
    if finished(found):
        return []
    if done := _done(found):
        return [f"{done}, but not all that landed is merged", *_job(found, now_us)]
    return list(_processes(found, limit_s, now_us))


def landed_us(lander: Mapping[str, Any]) -> int:
    """Return when a lander last landed something, merged or not."""
    newest: int = lander["now_us"] if lander["landed_us"] is None else lander["landed_us"]
    return newest


def _done(found: Found) -> str:
    """Return that no device has anything more; empty if one may have."""
    states = [each["state"] for each in found["frontier"]["devices"]]
    if not states or not _NO_MORE.issuperset(states):
        return ""
    are = "the only device is" if len(states) == 1 else f"all {len(states):,} devices are"
    return f"{are} {'done or retired' if DeviceState.RETIRED in states else 'done'}"


def _processes(found: Found, limit_s: float, now_us: int) -> Iterator[str]:
    """Yield what is wrong with job and landers, where more is to come."""
    runs, lake = found["runs"], found["lake"]
    if runs["job"] is False and runs["lander"] is False and found["failure"] is None:
        yield (
            f"neither a job nor a lander runs on this machine ({_last(found)}): start "
            f"`lasp-edge cloud MODULE:PROGRAM --broker URL --lake {lake}`, which runs both"
        )
        return
    yield from _job(found, now_us)
    landers = found["frontier"]["landers"].values()
    last_us = max(map(landed_us, landers), default=found["made_us"])
    if _is_old(last_us, limit_s, now_us):
        last = f"since {_second(last_us)}" if landers else "ever"
        yield f"nothing has landed {last}: {_of_lander(runs['lander'], lake)}"


def _job(found: Found, now_us: int) -> Iterator[str]:
    """Yield what is wrong with the job."""
    runs, failure, commits = found["runs"]["job"], found["failure"], waiting(found)
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
    elif first := first_batch(found):
        if _is_old(found["job_since_us"], _FIRST_S, now_us):
            yield f"the job is {first}: see its log"
    elif commits > _FEW_COMMITS or _waits_long(found["merged"], now_us):
        yield f"the job stands still or falls behind ({_last(found)}): see its log"


def first_batch(found: Found) -> str:
    """Return that the job has finished no batch since it was started; empty unless one waits."""
    since_us, merged = found["job_since_us"], found["merged"]
    last_us = None if merged is None else merged["last_us"]
    if since_us is None or not waiting(found) or (last_us is not None and last_us >= since_us):
        return ""
    return f"in its first batch since it was started at {_second(since_us)}, and {_wait(found)}"


def _wait(found: Found) -> str:
    commits = waiting(found)
    return "a commit waits" if commits == 1 else f"{commits:,} commits wait"


def _waits_long(merged: Mapping[str, Any] | None, now_us: int) -> bool:
    oldest_us = None if merged is None else merged["oldest_us"]
    return oldest_us is not None and _is_old(oldest_us, _SOON_S, now_us)


def _last(found: Found) -> str:
    """Return when a job has merged last, and what waits."""
    merged = found["merged"]
    if merged is None or merged["batch"] is None:
        last = "none has ever merged into this lake"
    elif merged["last_us"] is None:
        last = "when one last merged is not known"
    else:
        last = f"the last merged batch was begun at {_second(merged['last_us'])}"
    return f"{last}, and {_wait(found)}" if waiting(found) else last


def waiting(found: Found) -> int:
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
        named = held[0] if len(held) == 1 else "DEVICE"
        return f"{why}look at it, or type `{retire_command(named, found['program'])}`"
    if not frontier["devices"]:
        return "no device has reported: does an agent run with this broker and --fleet?"
    return "`lasp-edge lake status` shows more"
