"""One Spark session for all tests of the cloud tier: starting one takes seconds."""

import pytest

from cloud_tier.spark.session import spark_session


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    session = spark_session(app_name="lasp-edge tests", master="local[2]", short_run=True)
    yield session
    session.stop()
