import subprocess

import pytest

from cloud_tier.spark import java
from cloud_tier.spark.java import Java, find_java, launcher_home, parse_version
from lasp_edge.errors import EnvironmentLacks


def a_runtime(home, version, told="openjdk"):
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    # Java tells its version on standard error, after any "Picked up JAVA_TOOL_OPTIONS".
    executable.write_text(
        f"#!/bin/sh\necho 'Picked up x' >&2\necho '{told} version \"{version}\"' >&2\n"
    )
    executable.chmod(0o755)
    return home


@pytest.fixture
def bundled(monkeypatch):
    found = Java(java.Path("bundled"), 21, bundled=True)
    monkeypatch.setattr(java, "_bundled_java", lambda: found)
    return found


def test_java_home_comes_before_the_path(tmp_path, bundled):
    home = a_runtime(tmp_path / "home", "17.0.15")
    on_path = a_runtime(tmp_path / "path", "21.0.1")
    environ = {"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}
    assert find_java(environ) == Java(home, 17)
    assert find_java({"PATH": str(on_path / "bin")}) == Java(on_path, 21)


def test_a_link_on_the_path_leads_to_the_runtime(tmp_path, bundled):
    home = a_runtime(tmp_path / "real", "17.0.15")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "links")}).home == home


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "18.0.1"])
def test_a_version_that_spark_does_not_support_is_passed_over(tmp_path, bundled, version):
    home = a_runtime(tmp_path, version)
    assert find_java({"JAVA_HOME": str(home), "PATH": str(home / "bin")}) == bundled


def test_the_bundled_runtime_is_found_where_there_is_no_other(bundled, tmp_path):
    assert find_java({"PATH": str(tmp_path)}) == bundled


def test_a_chosen_runtime_comes_first_and_is_never_passed_over(tmp_path, bundled):
    home = a_runtime(tmp_path / "17", "17.0.15")
    chosen = a_runtime(tmp_path / "21", "21.0.1")
    environ = {"JAVA_HOME": str(home), "LASP_EDGE_JAVA_HOME": str(chosen)}
    assert find_java(environ) == Java(chosen, 21)
    with pytest.raises(EnvironmentLacks, match="holds no Java 17 or 21"):
        find_java(environ | {"LASP_EDGE_JAVA_HOME": str(tmp_path / "none")})


def test_what_tells_no_version_is_no_java():
    assert parse_version("command not found") is None


def test_the_machines_authorities_are_used_where_they_are(tmp_path, monkeypatch):
    store = tmp_path / "cacerts"
    store.touch()
    monkeypatch.setattr(java, "TRUST_STORE", store)
    option = f"-Djavax.net.ssl.trustStore={store}"
    assert option in Java(tmp_path, 21, bundled=True).command({})
    assert option not in Java(tmp_path, 21).command({})
    told = {"JDK_JAVA_OPTIONS": "-Djavax.net.ssl.trustStore=mine"}
    assert option not in Java(tmp_path, 21, bundled=True).command(told)
    store.unlink()
    assert option not in Java(tmp_path, 21, bundled=True).command({})


def test_the_launchers_java_drops_the_missing_module_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("LASP_EDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "TRUST_STORE", tmp_path / "none")
    home = tmp_path / "a home"
    a_runtime(home, "21").joinpath("bin", "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    shim = launcher_home(Java(home, 21, bundled=True)) / "bin" / "java"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    told = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["-cp", "a b", "", "Main"]


def test_the_launcher_starts_from_a_runtime_of_the_users_own_unchanged(tmp_path):
    assert launcher_home(Java(tmp_path, 17)) == tmp_path
