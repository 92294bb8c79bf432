"""Delta Lake's two JARs, brought once from Maven Central by the Ivy that pyspark ships.

`--packages` would pull twenty JARs at every start and hangs without a network; these two suffice.
They are checked against their digests and renamed into place, so a killed or concurrent download
leaves either the whole file or none.

`python -m cloud_tier.spark.jars` prints their paths for `spark-submit --jars`.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from cloud_tier.spark.cache import cache_folder
from cloud_tier.spark.java import Java, find_java
from lasp_edge.errors import EnvironmentLacks
from lasp_edge.tool.installing import install_line

VERSION = "4.4.0"
DIGESTS = {
    "delta-spark_4.2_2.13": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    "delta-storage": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
_TIMEOUT_S = 300


def delta_jars(folder: Path | None = None, *, java: Java | None = None) -> tuple[Path, ...]:
    """Return the paths of the JARs, downloading what is missing.

    Args:
        folder: Where they are kept; by default in the cache.
        java: What runs Ivy; by default what `find_java` finds, if anything is missing.

    Raises:
        EnvironmentLacks: A JAR is missing and cannot be downloaded.
    """
    folder = folder or cache_folder() / "jars"
    paths = {name: folder / f"{name}-{VERSION}.jar" for name in DIGESTS}
    for name, path in paths.items():
        if not path.is_file():
            _download(name, path, java or find_java())
    return tuple(paths.values())


def spark_home() -> Path:
    """Return the folder of the installed Spark, which holds `jars` and `bin`.

    Raises:
        EnvironmentLacks: pyspark is not installed, or only its Connect client is.
    """
    try:
        from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EnvironmentLacks("pyspark is missing", install_line("cloud")) from error
    home = Path(_find_spark_home())
    if not (home / "jars").is_dir():
        raise EnvironmentLacks(f"no JARs in {home / 'jars'}", install_line("cloud"))
    return home


def _download(name: str, path: Path, java: Java) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as scratch:
        arrived = Path(scratch) / path.name
        problem = _run_ivy(name, arrived, java)
        if not arrived.is_file():
            raise _lacks(path, problem)
        digest = hashlib.sha256(arrived.read_bytes()).hexdigest()
        if digest != DIGESTS[name]:
            raise _lacks(path, f"the file has the digest {digest}, not {DIGESTS[name]}")
        arrived.replace(path)


def _run_ivy(name: str, path: Path, java: Java) -> str:
    """Retrieve one JAR to `path` and return the problem that Ivy reports, if any."""
    (ivy,) = (spark_home() / "jars").glob("ivy-*.jar")
    scratch = path.parent
    command = [*java.command(), f"-Divy.default.ivy.user.dir={scratch}", "-jar", str(ivy)]
    command += ["-cache", str(scratch / "cache"), "-m2compatible", "-notransitive"]
    command += ["-dependency", "io.delta", name, VERSION, "-types", "jar", "bundle"]
    # "bundle" is how delta-spark's own file declares its packaging.
    command += ["-retrieve", str(scratch / "[artifact]-[revision].[ext]")]
    try:
        ran = subprocess.run(  # noqa: S603 - every part is our own
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT_S} s"
    except OSError as error:
        return str(error)
    lines = [line.strip() for line in ran.stdout.splitlines()]
    wrong = [line for line in lines if "error" in line or "not found" in line]
    return wrong[-1] if wrong else f"Ivy ended with code {ran.returncode}"


def _lacks(path: Path, why: str) -> EnvironmentLacks:
    what = f"Delta's {path.name} is not in {path.parent} and could not be downloaded ({why})"
    return EnvironmentLacks(what, f"{sys.executable} -m cloud_tier.spark.prefetch")


if __name__ == "__main__":
    sys.stdout.write(",".join(map(str, delta_jars())) + "\n")
