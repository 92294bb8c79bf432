"""What `lasp_edge.testing.replay` runs: it finds this by an entry point."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from device_agent.agent.sources.choice import options as source_options
from device_agent.agent.sources.choice import source_from_spec
from device_agent.agent.sources.source import SourceContext
from device_agent.agent.sources.times import FIRST_US
from device_agent.agent.stored_rows import Retraction
from lasp_edge.event import key_parts
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import shown_parts
from lasp_edge.testing.parameters import ParameterSetting
from lasp_edge.testing.replay import ReplayedRows, ReplayOutcome
from simulations.demo.recording import devices_in, is_csv
from simulations.entries import entries_of
from simulations.fleet import GENTLE, ROUGH
from simulations.oracle import Reading
from simulations.oracle.definitions import WindowDefinition
from simulations.oracle.readings import identified
from simulations.replay import REFUSED, ReplayedFleet, replaying
from simulations.world.faults import FaultRates

DEVICE = "pi-1"
"""The name of the device of a file that names none."""
MOST_DEVICES = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def tested(
    plan: Plan,
    given: Sequence[tuple[str, str, Any, int, Mapping[str, str]]] | Path,
    faults: str | Iterable[str],
    seed: int,
    options: Mapping[str, Any],
    settings: Iterable[ParameterSetting],
    retain_us: int,
) -> ReplayOutcome:
    """Return what a fleet made of readings; see `lasp_edge.testing.replay`."""
    unread: Counter[str] = Counter()
    if isinstance(given, Path):
        named = {name.replace("_", "-"): value for name, value in options.items()}
        readings = _in_file(plan, given, named, unread)
    else:
        readings = [Reading(*each) for each in given]
    rates, entries = _rates(faults), entries_of(plan, settings)
    with replaying(
        plan, readings, faults=rates, seed=seed, entries=entries, retain_us=retain_us
    ) as replay:
        wrong = replay.compared.wrong()
        if wrong:
            raise AssertionError("\n".join(wrong + replay.failures))
        return ReplayOutcome(
            {name: _windows(replay, name) for name in plan.windows},
            {name: _results(replay, name) for name in plan.stream_results},
            replay.values,
            _alerts(replay),
            replay.variables,
            [*_lines_of(unread), *_unmatched(plan, readings), *replay.failures],
            replay.compared.lines(),
        )


def _rates(faults: str | Iterable[str]) -> FaultRates:
    if isinstance(faults, str):
        if faults != "rough":
            raise ValueError(f'faults="rough", or a list such as ["kill=60"], and not {faults!r}')
        return ROUGH
    rates = list(faults)
    return FaultRates.parsed(rates) if rates else GENTLE


def _lines_of(unread: Mapping[str, int]) -> list[str]:
    return [f"{REFUSED}{reason} (lines: {count})" for reason, count in unread.items()]


def _unmatched(plan: Plan, readings: Sequence[Reading]) -> list[str]:
    """Return how many retractions take back a reading that is not there, by event."""
    came = {identified(plan, each)[0] for each in readings if not each.retracted}
    lost = Counter(
        each.event for each in readings if each.retracted and identified(plan, each)[0] not in came
    )
    return [
        f"{event}: a retraction takes back a reading that never came: none has its device, time, "
        f"value and tags (readings: {count:,})"
        for event, count in sorted(lost.items())
    ]


def _in_file(
    plan: Plan, path: Path, given: Mapping[str, Any], unread: Counter[str]
) -> list[Reading]:
    """Return the readings of a recording, as agents read them; count the lines that gave none.

    Raises:
        ValueError: the file or an option cannot work, or no line gave a reading.
    """
    known = {option.name: option for option in source_options()}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(f"{unknown[0]} is no option of a file; there are {', '.join(known)}")
    options = {name: known[name].of_file(value) for name, value in given.items()}
    field = options.get("device-field")
    devices = devices_in(path, field, MOST_DEVICES) if field else [DEVICE]
    found: list[Reading] = []
    for device in devices:
        refused: Counter[str] = Counter()
        found += _of_device(plan, path, device, options, refused)
        unread |= refused  # what no device can be read off comes with each
    if not found and unread:
        raise ValueError(f"{path}: no line gave a reading: {'; '.join(_lines_of(unread))}")
    return found


def _of_device(
    plan: Plan, path: Path, device: str, options: Mapping[str, Any], refused: Counter[str]
) -> Iterable[Reading]:
    context = SourceContext(
        list(plan.events),
        device,
        Random(0),
        options=options,
        texts=plan.text_events,
        first_us=FIRST_US,
    )
    source = source_from_spec(f"{'csv' if is_csv(path) else 'jsonl'}:{path}", context)
    source.open(None)
    now_us = 0
    while (due_us := source.due_us(now_us)) is not None:
        now_us = max(now_us, due_us)  # a last line without an end may be written on, for a while
        batch = source.poll(now_us)
        if batch is None:
            continue
        refused.update(batch.refused)
        columns = zip(batch.names, batch.values, batch.times_us, batch.tags, strict=True)
        for name, value, time_us, tags in columns:
            if time_us is None:
                raise ValueError(f'{path}: readings need times: name their field by time="ts"')
            back = isinstance(value, Retraction)
            read = value.value if isinstance(value, Retraction) else value
            yield Reading(device, name, read, time_us, tags, retracted=back)
    source.close()


def _windows(replay: ReplayedFleet, name: str) -> ReplayedRows:
    """Return the newest revision of each row of a window."""
    fleet = replay.fleet
    window = fleet.plan.windows[name]
    definition = WindowDefinition(fleet.plan, window, fleet.world.operator.commands.control)
    return ReplayedRows(
        {
            "key": key_parts(at.key),
            "start": _time(at.start_us),
            "end": _time(row.end_us),
            **definition.shape(at.start_us).fold.lower(row.partial, window.resolution),
            "devices_in": row.devices_in,
            "status": row.status,
            "revision": row.revision,
        }
        for at, (*_, row) in sorted(fleet.lander.revisions.items())
        if at.window == name
    )


def _results(replay: ReplayedFleet, name: str) -> ReplayedRows:
    """Return the rows of a result."""
    plan = replay.fleet.plan
    result = plan.stream_results[name]
    landed = replay.fleet.lander.rows(plan, name)
    return ReplayedRows(
        {
            "device": device,
            "key": key_parts(row.key),
            "time": _time(place[0]),
            **_in_datetimes(result, dict(zip(result.columns, row.parts or (), strict=True))),
        }
        for (device, place), row in sorted(landed.items(), key=lambda each: each[0])
    )


def _in_datetimes(result: StreamResult, columns: dict[str, int | str]) -> dict[str, Any]:
    """Return the parts of a row in their units; `start_us` becomes the datetime `start`."""
    found: dict[str, Any] = {}
    for name, value in shown_parts(result, columns).items():
        is_time = name in result.times
        found[name.removesuffix("_us") if is_time else name] = _time(value) if is_time else value
    return found


def _alerts(replay: ReplayedFleet) -> ReplayedRows:
    """Return what alerts say, of each device and key; those of a gateway are of no device."""
    return ReplayedRows(
        {
            "alert": name,
            "device": device,
            "key": key_parts(status.get("key", "")),
            "state": status["state"],
            "value": status["value"],
        }
        for device, name, status in _statuses(replay)
    )


def _statuses(replay: ReplayedFleet) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield device, alert and status; "" for the device of an alert of the whole fleet's rows."""
    for device, alerts in sorted(replay.alerts.items()):
        for name, found in sorted(alerts.items()):
            for status in found.get("keys", {"": found}).values():
                yield device, name, status
    for (name, _), status in sorted(replay.fleet.lander.alerts.statuses.items()):
        yield "", name, status


def _time(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)
