"""The blocks of README and docs, and how a test runs what they show."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.brokers import PATIENCE_S

CHECKOUT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]


class Block(NamedTuple):
    """What stands between two fences, and the language that is named at the first."""

    language: str
    text: str


FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [Block(*found) for page in PAGES for found in FENCED.findall(page.read_text())]
MARKS = {
    "greenhouse": ("python", 'program = Program("greenhouse")'),
    "make": ("sh", "make demo"),
    "live table": ("text", "<1 s behind"),
    "demo output": ("text", "RESULT ok"),
    "broker": ("text", "listener 1883"),
    "device": ("sh", "python3 -m venv"),
    "serve the wheel": ("sh", "http.server"),
    "fetch the wheel": ("sh", "--find-links"),
    "new": ("sh", "lasp-edge new house"),
    "doctor": ("sh", "lasp-edge doctor"),
    "try": ("sh", "lasp-edge try"),
    "containers": ("sh", "docker compose up"),
    "service": ("sh", "service install"),
    "status": ("sh", "lasp-edge status --data-dir"),
    "house file": ("toml", "zigbee2mqtt/{room}"),
    "recorded files": ("toml", 'kind = "csv"'),
    "secure broker": ("sh", "broker config"),
    "secure device": ("sh", "--ca-file"),
    "signed": ("sh", "keys new"),
    "gateway": ("sh", "lasp-edge gateway lasp_edge.examples"),
    "entrance": ("python", 'Program("entrance")'),
    "readings of doors": ("json", '"of": "cellar"'),
    "order of doors": ("sh", "lasp-edge gateway entrance:program"),
    "visits": ("text", "count_q  present"),
    "other visits": ("sh", "lasp-edge replay entrance"),
    "other visits shown": ("text", "in the replay alone"),
    "energy": ("python", 'Program("energy")'),
    "readings of plugs": ("json", '"of": "washer"'),
    "order of plugs": ("sh", "lasp-edge gateway energy:program"),
    "loads": ("text", "watts_q"),
    "outliers": ("python", "class Outliers"),
    "choices": ("sh", "--plan --recording plugs.jsonl"),
    "choices shown": ("text", "slice in order, power local"),
    "a broken law": ("text", "FAIL  scan odd: C2"),
    "plot": ("sh", "lasp-edge plot"),
    "cloud": ("sh", "whl[cloud]'"),
    "cluster": ("sh", "spark.executor.memory"),
    "submitted": ("sh", "command.submit job"),
    "object store": ("sh", "s3a://bucket/lake"),
    "shared": ("sh", "--share"),
    "recording": ("json", "attic-pi"),
    "trial": ("sh", "--replay readings.jsonl"),
    "trial output": ("csv", "key,start_us"),
    "analysts": ("python", "lake.coverage()"),
    "shared variables": ("python", "lake.shared_names()"),
    "looking into a lake": ("sh", "--as-of '2025-01-01 00:05"),
    "deleting": ("sh", "lake forget"),
    "lake behind": ("sh", "--fail-if-behind"),
    "unit of systemd": ("ini", "ExecStart="),
    "pods": ("yaml", "kind: StatefulSet"),
    "merged once": ("sh", "--lake ./lake --once"),
    "plan of a lake": ("sh", "lake plan --lake"),
    "upgrade of a lake": ("sh", "lake upgrade"),
    "check against": ("sh", "--against former"),
    "deltalake": ("python", "newest = 1"),
    "duckdb": ("python", "import duckdb"),
    "spark": ("python", "spark_session"),
    "merged view": ("sql", "max_by(count, seq)"),
    "sketches": ("sql", "hll_sketch_estimate"),
    "cold chain": ("python", "cold-chain"),
    "rooms": ("python", 'Program("rooms")'),
    "own fold": ("python", "class Range"),
    "check": ("sh", "lasp-edge check lasp_edge"),
    "simulate": ("sh", "lasp-edge simulate"),
    "doors": ("python", 'Program("doors")'),
    "acting": ("python", 'Program("cellars")'),
    "meter": ("python", "scans.differences(reset=True), per_device"),
    "meter readings": ("json", '"wrong": true'),
    "correcting": ("sh", "--retract wrong"),
    "corrected": ("text", "result used"),
    "rows in the lake": ("sh", "results used --lake"),
    "rows as they stand": ("text", "difference_q"),
    "laundry": ("python", 'Program("laundry")'),
    "cold room": ("python", 'Program("cold-room")'),
    "climate": ("python", 'Program("climate")'),
    "words": ("python", 'Program("words")'),
    "alerting": ("sh", "--alert-command"),
    "values": ("sh", "lasp-edge get"),
    "dashboard": ("sh", "lasp-edge dashboard lasp_edge"),
    "phone": ("sh", "--page-login page-password"),
    "tunnel": ("sh", "ssh -L"),
    "members": ("sh", "lasp-edge members"),
    "fleet": ("python", "seed=42"),
    "replay": ("python", "lasp_edge.testing import replay"),
    "hothouse": ("python", 'Program("hothouse")'),
    "setting": ("sh", "lasp-edge set"),
    "set": ("text", "Known on 2 of 2"),
    "press": ("python", 'Program("press")'),
    "washroom": ("python", 'Program("washroom")'),
    "energy per flat": ("python", 'Program("flats")'),
    "percentiles": ("python", 'Program("services")'),
    "weighted mean": ("python", 'Program("trades")'),
    "trend": ("python", 'Program("drift")'),
    "geometric mean": ("python", 'Program("growth")'),
    "smoothed": ("python", 'Program("bath")'),
    "washing machine": ("python", 'Program("washing")'),
    "debounce": ("python", 'Program("arcade")'),
    "shared sets": ("python", 'Program("night-watch")'),
    "ratio": ("python", 'Program("solar")'),
    "percentile of means": ("python", 'Program("halls")'),
    "alert above": ("python", 'Program("servers")'),
    "joined sensors": ("python", 'Program("mould")'),
    "different ones": ("python", 'Program("gates")'),
    "house": ("", "crdts/          CRDTs"),
}
"""Language and some words of each block; every block has a name here, and a test that uses it."""


def block(name):
    """Return the text of a block."""
    language, mark = MARKS[name]
    (found,) = [b.text for b in BLOCKS if b.language == language and mark in b.text]
    return found


def shape(line):
    """A line without what differs from run to run."""
    return re.sub(r"[\d.,:-]*\d[\d.,:-]*", "#", line).split()


def checks_shown():
    """Return how each check begins in the demo's output that is shown; the demo's test wants it."""
    lines = [line for line in block("demo output").splitlines() if re.match(r"\s*\([a-f]\)", line)]
    assert len(lines) >= 6
    return [shape(line)[:4] for line in lines]


def commands(text):
    """Return the command lines of a block, continued lines joined."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def replaced(text, pairs):
    """Return a text with some of its words replaced."""
    for before, after in pairs.items():
        text = text.replace(before, after)
    return text


def here(command, home, broker):
    """Return a command line of the README as words, for this machine and this broker."""
    places = {"mqtt://192.168.1.10": broker, "~/lasp/bin/": f"{BIN}/", "~/": f"{home}/"}
    words = shlex.split(replaced(command, places))
    return [str(BIN / words[0]) if words[0] in {"lasp-edge", "pip"} else words[0], *words[1:]]


def succeeds(words, home, timeout=PATIENCE_S):
    """Run a command to its end in a folder, and return what it printed."""
    done = subprocess.run(
        words,
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
