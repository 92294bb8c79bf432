"""The form of an agent's file: its tables, and the number of its format."""

from typing import Final

from device_agent.agent.state.pane_table import SCHEMA as PANE_SCHEMA
from device_agent.storage.opening import StoreForm
from device_agent.storage.sealed_file import unsealed, unsealed_pane

FORMAT = 4
"""The number of the format of the tables and of their packed values; it rises with each change.
A file of another format is refused, and left as it is."""
APPLICATION = 0x6C617000
"""With the format added, the file's application id: a flipped bit in the format is damage, and not
another format."""
UNMARKED = 3
"""The newest format whose files have no application id."""

_SCHEMA = f"""
{PANE_SCHEMA}
CREATE TABLE IF NOT EXISTS replica (
    incarnation INTEGER PRIMARY KEY, nonce INTEGER NOT NULL, device TEXT NOT NULL,
    seal INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS fact (
    name TEXT PRIMARY KEY, value TEXT NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (
    name TEXT PRIMARY KEY, total INTEGER NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS source (
    name TEXT PRIMARY KEY, cursor TEXT, high_us INTEGER, stamped INTEGER NOT NULL,
    done INTEGER NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS identity (
    event TEXT, tags TEXT, block INTEGER, identities BLOB NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (event, tags, block)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meaning (
    number INTEGER PRIMARY KEY, variable TEXT NOT NULL, meaning TEXT NOT NULL,
    seal INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS variable (
    meaning INTEGER, key TEXT, n INTEGER, part BLOB NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (meaning, key, n)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS member (
    device TEXT PRIMARY KEY, control INTEGER NOT NULL, retired INTEGER NOT NULL,
    incarnation INTEGER NOT NULL, nonce INTEGER NOT NULL, seq INTEGER NOT NULL,
    seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reading (
    n INTEGER PRIMARY KEY, accepted_us INTEGER NOT NULL, event TEXT NOT NULL,
    time_us INTEGER NOT NULL, value TEXT NOT NULL, quantised INTEGER NOT NULL, tags TEXT NOT NULL,
    source TEXT NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS waiting (
    n INTEGER PRIMARY KEY, boot TEXT NOT NULL, monotonic_us INTEGER NOT NULL,
    readings INTEGER NOT NULL, batch BLOB NOT NULL, seal INTEGER NOT NULL);
"""

AGENT: Final = StoreForm(
    _SCHEMA,
    FORMAT,
    APPLICATION,
    UNMARKED,
    # Readings are read by no agent: their rows are verified by the command that prints them.
    {
        "pane": unsealed_pane,
        **dict.fromkeys(
            ("replica", "fact", "counter", "source", "identity", "meaning", "variable", "member"),
            unsealed,
        ),
        "waiting": unsealed,
    },
    all_pages=True,
    cache_kib=256,
    advice="start the agent with the version that wrote it until all has landed, or with another "
    "--data-dir",
)
"""The form of an agent's file."""
