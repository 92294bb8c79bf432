"""What all tests share: Hypothesis profiles, order, one Spark session, real data, and quick files.

Profiles, chosen by the environment variable HYPOTHESIS_PROFILE: `dev` (the default) is quick, `ci`
tries more. Both are deterministic, so a failure is one for everybody.
"""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support_missing import lacks

if TYPE_CHECKING:
    from simulations.processes.broker import PrivateBroker
    from tests.support_warm_jvm import WarmJvm

for _profile, _examples in {"dev": 40, "ci": 200}.items():
    settings.register_profile(
        _profile,
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=_examples,
        # How long examples take to draw says how busy the machine is.
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

CHECKOUT = Path(__file__).parent.parent
BORROWS = (
    "tests/simulations/test_demo_everything.py",
    "tests/test_readme_processes.py",
    "tests/test_readme_lake.py",
)
"""Files whose commands borrow the JVM, in order: the last of them and all others keep it."""
IN_SPARK = {
    "lakes": (
        *BORROWS,
        "tests/cloud_tier/job/test_agreement.py",
        "tests/cloud_tier/job/test_own_combine.py",
        "tests/cloud_tier/job/test_restored.py",
        "tests/cloud_tier/job/test_shared.py",
        "tests/cloud_tier/job/test_sketches.py",
        "tests/cloud_tier/job/test_streaming.py",
        "tests/cloud_tier/job/test_time_travel.py",
        "tests/cloud_tier/spark/",
        "tests/end_to_end/test_every_fold.py",
        "tests/end_to_end/test_lost_lake.py",
        "tests/end_to_end/test_recorded_data.py",
        "tests/end_to_end/test_streamed.py",
        "tests/end_to_end/test_strangers.py",
    ),
    "the job": ("tests/cloud_tier/job/",),
}
"""Where the tests of shared sessions are; the groups take about equally long. There are two: a
session's start, and compiling what steps need, takes a core for half a minute, and a group that is
left alone at the end leaves cores idle."""
LONGEST = (
    "tests/simulations/test_demo_end_to_end.py",
    "tests/end_to_end/test_accidents.py",
    "tests/simulations/test_demo_story.py",
    "tests/device_agent/agent/timing/test_faked_clocks.py",
    "tests/end_to_end/test_secured_fleet.py",
    "tests/device_agent/agent/test_runtime.py",
    "tests/simulations/test_world_fleet_order.py",
)
"""The files that take longest beside those of the shared session, the longest first."""
_WITH_WAITS = 0.9
"""The part of the run, after the longest files, in which others wait: the last ones only compute,
so that no process is left alone with a wait."""

_YIELDS = 5
"""How much nicer a process of pytest is that has no shared session, as `nice` counts. The two that
have one take half of the processor time, and would be left alone at the end, with idle cores."""

MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 * 2**30
"""A whole run leaves some 100 MB there. A container has 64 MB unless it is told otherwise."""


class DoctestsWhereSomeAre:
    """Collects the doctests of files that have some; others would be imported and searched, too."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[Any], list[Any]]:
        """Leave out the collectors of doctests that would find nothing."""
        found = yield
        is_needed = ">>>" in file_path.read_text() if found else False
        return [each for each in found if is_needed or type(each).__name__ != "DoctestModule"]


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory where there is room, unless TMPDIR says where they are kept.

    And have Ctrl-C end what is started: a script that starts the tests in the background has them
    ignore it, and so all that they start.

    A store waits for its disk at every commit, and such waits took most of the tests' time. They
    prove nothing: a process that is killed, or an image that is put back, loses nothing for them.
    """
    config.pluginmanager.register(DoctestsWhereSomeAre())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    room = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free
    if room > ROOM_BYTES:
        os.environ.setdefault("TMPDIR", str(MEMORY))
        tempfile.tempdir = None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare how long structural fuzzing goes on."""
    words = "structurally mutated frames that are given to agent, lander and operator"
    parser.addoption("--fuzz-frames", type=int, default=3_000, metavar="N", help=words)
    parser.addoption("--fuzz-seed", type=int, default=0, metavar="S", help="where they begin")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Say which tests stay in one process: those of one file, and those of one Spark session.

    So a group pays once for the session's start and for what it compiles.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - only where tests are divided

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, _ = nodeid.partition("::")
            return _in_spark(file) or file

    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, nor ever again in what was collected.

    Nearly all of it lives until the end, and each process of pytest went through it many times.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that take longest first; then let waiting and computing take turns.

    No process is left with a long file at the end. A file with real processes waits half of its
    time, so that beside it another one computes: all of them in a row would leave cores idle.
    """
    marks = ("slow", "spark", "broker")
    marked = {_file(item) for item in items if any(map(item.get_closest_marker, marks))}
    places = {file: (at, 0.0) for at, file in enumerate(LONGEST, start=-len(LONGEST))}
    groups = list(IN_SPARK)
    for file in map(_file, items):
        if group := _in_spark(file):
            at = groups.index(group) - len(groups) - len(LONGEST)
            places[file] = (at, float((*BORROWS, file).index(file)))
    rest = [file for file in dict.fromkeys(map(_file, items)) if file not in places]
    waiting = [file for file in rest if file in marked]
    computing = [file for file in rest if file not in marked]
    for files, share in ((waiting, _WITH_WAITS), (computing, 1.0)):
        places |= {file: (0, share * at / len(files)) for at, file in enumerate(files)}
    items.sort(key=lambda item: places[_file(item)])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let shared sessions go first: each is one long row of tests, and the run ends with theirs.

    They are given out first, so no process takes one after it has become nicer.
    """
    is_usual = not os.getpriority(os.PRIO_PROCESS, 0)
    if "PYTEST_XDIST_WORKER" in os.environ and is_usual and not _in_spark(_file(item)):
        os.nice(_YIELDS)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _in_spark(file: str) -> str | None:
    """Return the group of a file whose tests share a Spark session."""
    return next((group for group, files in IN_SPARK.items() if file.startswith(files)), None)


@pytest.fixture(scope="session")
def warm_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator["WarmJvm"]:
    """The JVM of all Spark processes of a process of pytest that do without one of their own."""
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    from tests.support_warm_jvm import WarmJvm  # noqa: PLC0415 - an extra

    with WarmJvm(tmp_path_factory.mktemp("jvm")) as jvm:
        yield jvm


@pytest.fixture(scope="session")
def spark(warm_jvm: "WarmJvm") -> Iterator[Any]:
    """One Spark session for all tests of a process: starting one takes seconds."""
    from cloud_tier.spark.session import spark_session  # noqa: PLC0415 - an extra

    with warm_jvm.lent():
        session = spark_session(app_name="lasp-edge tests", master="local[2]", short_run=True)
    # As in a query's own thread: without it Spark walks the stack for each operator of a plan.
    session.sparkContext.setLocalProperty("callSite.long", "a test")
    yield session
    session.stop()


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator["PrivateBroker"]:
    """A private broker for one test, of the kind that is the fixture's parameter, if it has one."""
    from tests.brokers import private_broker  # noqa: PLC0415 - most tests need none

    with private_broker(tmp_path / "broker", getattr(request, "param", None)) as running:
        yield running


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["PrivateBroker"]:
    """A private broker for all tests of a file."""
    from tests.brokers import private_broker  # noqa: PLC0415 - most tests need none

    with private_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real data: LASP_EDGE_TEST_DATA, else ../shared/data beside the checkout."""
    named = os.environ.get("LASP_EDGE_TEST_DATA")
    found = Path(named) if named else CHECKOUT.parent / "shared" / "data"
    if not found.is_dir():
        lacks(f"no real data in {found}; say where it is in LASP_EDGE_TEST_DATA")
    return found
