"""Print what `spark-submit` needs beside the master: Delta's JARs, settings, what to run.

    spark-submit --master spark://cluster:7077 $(python -m cloud_tier.command.submit job) \
        greenhouse:program --no-lander --lake /mnt/lake
    spark-submit --master spark://cluster:7077 $(python -m cloud_tier.command.submit connect)

The second starts a Spark Connect server, on which `lasp-edge cloud --master sc://HOST` runs.
"""

import argparse
import sys
from pathlib import Path

from cloud_tier.spark.jars import delta_jars
from cloud_tier.spark.session import DELTA, LOG_OPTION, MEANING
from lasp_edge.errors import EnvironmentLacks

CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def options_of(what: str) -> list[str]:
    """Return the options of `spark-submit`, and the file to run.

    Args:
        what: `job` or `connect`.

    Raises:
        EnvironmentLacks: Delta's JARs are missing and cannot be had.
    """
    options = ["--jars", ",".join(map(str, delta_jars()))]
    # Spark's own would log each task of each step.
    log = {"spark.driver.extraJavaOptions": LOG_OPTION}
    for name, value in {**MEANING, **DELTA, **log}.items():
        options += ["--conf", f"{name}={value}"]
    if what == "connect":
        return [*options, "--class", CONNECT_SERVER, "spark-internal"]
    return [*options, str(Path(__file__).with_name("submitted.py"))]


def main() -> int:
    """Print the options, for `$(...)` in a shell."""
    parser = argparse.ArgumentParser("python -m cloud_tier.command.submit", description=__doc__)
    parser.add_argument("what", choices=["job", "connect"], help="what is to run")
    try:
        options = options_of(parser.parse_args().what)
    except EnvironmentLacks as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    sys.stdout.write(" ".join(options) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
