"""The options that say for whom results wait, alike wherever they are asked for."""

import argparse

from cloud_tier.lake.coverage import DEAD_AFTER_S


def add_roster_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which devices are expected."""
    parser.add_argument(
        "--roster",
        type=lambda text: tuple(name for name in text.split(",") if name),
        metavar="A,B,..",
        help="the devices that are waited for (default: whichever were heard)",
    )


def add_dead_after_argument(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Declare how long a silent device is waited for; `meaning` is what the help says."""
    add = parser.add_argument
    add("--dead-after", type=float, default=DEAD_AFTER_S, metavar="S", help=meaning)
