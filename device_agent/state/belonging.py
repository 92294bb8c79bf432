"""Whose a data directory is: readings of one device, by one program."""

from pathlib import Path

from lasp_edge.language.plan import Plan


def need_own(
    directory: Path,
    known: tuple[int, int, str] | None,
    holds: str | None,
    device: str,
    program: Plan | None,
) -> None:
    """Check that a data directory is of this device and program.

    Raises:
        ValueError: it is of another one.
    """
    if known and known[2] != device:
        raise ValueError(
            f"{directory} belongs to device {known[2]!r}; give {device!r} a --data-dir of its own"
        )
    if program is not None and holds not in {None, program.name}:
        raise ValueError(
            f"{directory} holds readings of the program {holds!r}; give {program.name!r} a "
            "--data-dir of its own"
        )
