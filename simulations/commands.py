"""What the commands of the simulations share: how their words are parsed, and how they print.

>>> parser_of("simulations.explore", "Explore.").prog
'python -m simulations.explore'
"""

import argparse


def parser_of(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a module that is run; its help begins with a text as it is written."""
    return argparse.ArgumentParser(
        f"python -m {module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201 - a command
