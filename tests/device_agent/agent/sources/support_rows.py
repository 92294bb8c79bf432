"""Recorded files, and sources that read them."""

import gzip
import json
import os
import random

from device_agent.agent.sources.choice import source_from_spec
from device_agent.agent.sources.source import SourceContext

CONTEXT = SourceContext(["t"], "d", random.Random(1), options={"time": "ts"})
LONG_AGO_S = 1_600_000_000
LATER_US = 1_700_000_000_000_000


def source(path, kind="jsonl", cursor=None, *, device="d", events=("t",), **options):
    more = {name.replace("_", "-"): value for name, value in options.items()}
    context = SourceContext(events, device, CONTEXT.jitter, options={**CONTEXT.options, **more})
    opened = source_from_spec(f"{kind}:{path}", context)
    opened.open(cursor)
    return opened


def written(path, text, *, fresh=False):
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    if not fresh:
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    return path


def rows(count, start=0):
    return "".join(json.dumps({"ts": n, "t": n}) + "\n" for n in range(start, start + count))


def csv_rows(count, start=0, wide=0):
    lines = [f"{n},{n}{',' * wide}\n" for n in range(start, start + count)]
    return ",".join(["ts", "t", *map(str, range(wide))]) + "\n" + "".join(lines)
