import hashlib

import pytest

from cloud_tier.spark import jars
from cloud_tier.spark.jars import VERSION, delta_jars
from cloud_tier.spark.java import Java
from lasp_edge.errors import EnvironmentLacks


@pytest.fixture
def nothing_runs(tmp_path):
    return Java(tmp_path / "no-java", 17)


@pytest.fixture
def ivy(monkeypatch):
    """A stand-in for Ivy that writes what the test says, and counts its runs."""

    class Ivy:
        content = b"a jar"
        runs = 0

        def run(self, name, path, java):
            self.runs += 1
            if self.content is not None:
                path.write_bytes(self.content)
            return "module not found"

    fake = Ivy()
    monkeypatch.setattr(jars, "_run_ivy", fake.run)
    digest = hashlib.sha256(fake.content).hexdigest()
    monkeypatch.setattr(jars, "DIGESTS", dict.fromkeys(jars.DIGESTS, digest))
    return fake


def test_a_jar_is_downloaded_once(tmp_path, ivy, nothing_runs):
    folder = tmp_path / "jars"
    first = delta_jars(folder, java=nothing_runs)
    assert [path.name for path in first] == [
        f"delta-spark_4.2_2.13-{VERSION}.jar",
        f"delta-storage-{VERSION}.jar",
    ]
    assert {path.read_bytes() for path in first} == {b"a jar"}
    assert delta_jars(folder, java=nothing_runs) == first
    assert ivy.runs == 2


def test_what_is_kept_is_used_without_java_or_network(tmp_path, monkeypatch):
    for name in jars.DIGESTS:
        (tmp_path / f"{name}-{VERSION}.jar").touch()
    monkeypatch.setattr(jars, "find_java", lambda: pytest.fail("looked for Java"))
    assert len(delta_jars(tmp_path)) == 2


def test_a_damaged_download_is_refused_and_leaves_nothing(tmp_path, ivy, nothing_runs):
    ivy.content = b"half a jar"
    with pytest.raises(EnvironmentLacks, match="has the digest"):
        delta_jars(tmp_path, java=nothing_runs)
    assert list(tmp_path.iterdir()) == []


def test_without_a_network_one_line_says_what_to_type(tmp_path, ivy, nothing_runs):
    ivy.content = None
    with pytest.raises(EnvironmentLacks, match="module not found") as refused:
        delta_jars(tmp_path, java=nothing_runs)
    assert refused.value.line_to_type.endswith("-m cloud_tier.spark.prefetch")
    assert list(tmp_path.iterdir()) == []


def test_a_runtime_that_does_not_start_is_told(tmp_path, nothing_runs):
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    with pytest.raises(EnvironmentLacks, match="No such file"):
        delta_jars(tmp_path / "jars", java=nothing_runs)
