"""The cloud tier: lands the devices' frames in a lake, and merges them in Spark.

The order in which data flows through it:

lander     takes frames from the broker into the lake's table `landing`
job        the Spark job: one batch of `landing` after another becomes windows and values
lake       the lake's tables, what their columns mean, and how results are read without Spark
shared     shared variables as rows, and their join in SQL
spark      a Spark session that writes Delta tables, and all that it needs
command    `lasp-edge cloud`, `lander`, `lake`, `windows` and `globals`

`from cloud_tier import Lake` is what analysts need; it is imported when it is asked for.

The rules that need no Arrow, Delta or Spark are in `lasp_edge.protocol`: which frames are taken
(`acceptance`), the `frontier`, `spans` of windows that may have changed, and a row's `status`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloud_tier.lake.lake import Lake

__all__ = ["Lake"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: the lander and the job do without the reader."""
    if name in __all__:
        return _reader()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _reader() -> "type[Lake]":
    try:
        from cloud_tier.lake.lake import Lake  # noqa: PLC0415 - needs the extra `lake`
    except ModuleNotFoundError as error:
        if error.name not in {"deltalake", "pyarrow"}:
            raise
        from lasp_edge.tool.installing import install_line  # noqa: PLC0415 - rarely needed

        line = f"{error.name} is not installed; to bring it, type: {install_line('lake')}"
        raise ModuleNotFoundError(line, name=error.name) from None
    return Lake
