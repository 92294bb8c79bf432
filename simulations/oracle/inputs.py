"""What a fleet-wide value was made from, as a digest."""

from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import NamedTuple

from crdts import Version
from lasp_edge.folds.columns import ColumnValue, Partial
from lasp_edge.language.plan import Plan


class PublishedPartial(NamedTuple):
    """What a device last published of one key: the key's own version, and its partial."""

    version: Version
    partial: Partial


def inputs(
    plan: Plan,
    name: str,
    published: Mapping[tuple[str, str], PublishedPartial],
    retired: Mapping[str, Version],
    key: str | None = None,
    left_out: Collection[str] = (),
) -> str:
    """Return the `inputs` of a dynamic fold, by its definition.

    `published` is what each (key, device) last published; `retired` says up to which version a
    device was retired; devices that are `left_out` for their silence do not count, and nothing
    else tells of them. With `key` it is the digest of that key alone.

    Raises:
        KeyError: the program has no such dynamic fold.
    """
    members = [f"{device}={'.'.join(map(str, at))}" for device, at in sorted(retired.items())]
    texts = [str(plan.dynamic_folds[name].stream), "\x1f".join(members)]
    for (at, device), latest in published.items():
        if device not in {*retired, *left_out} and key in {None, at}:
            fields = [at, device, *map(str, latest.version), *map(_in_text, latest.partial)]
            texts.append("\x1f".join(fields))
    hashes = [int(sha256(text.encode()).hexdigest()[:16], 16) for text in texts]
    return f"{sum(hashes) % 2**64:016x}"


def _in_text(part: ColumnValue) -> str:
    if isinstance(part, bytes):
        return part.hex()
    return "" if part is None else str(part)
