"""Merge a fleet into Delta tables and keep its windows, in Spark.

Starts a lander beside it, which takes the fleet's messages from the broker. Both may be killed at
any moment and started again: nothing is lost and nothing counts twice.

  lasp-edge cloud lasp_edge.examples.greenhouse:program --broker mqtt://192.168.1.10 --lake ./lake
"""

import argparse
import fcntl
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cloud_tier.command.lander import add_lake_arguments
from cloud_tier.job import own_combine
from cloud_tier.job.control import check_functions
from cloud_tier.job.job import Job
from cloud_tier.job.opened import Superseded
from cloud_tier.job.repair import make_outdated, repair
from cloud_tier.job.run import Run
from cloud_tier.job.step import recalled
from cloud_tier.job.streaming import LOCAL_CONF
from cloud_tier.job.watching import BatchWatch, steps_run_here
from cloud_tier.lake.checkpoint import mend
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.deletion import kept_days
from cloud_tier.lake.failed import note_failure
from cloud_tier.lake.status import JOB_LOCK, note_start
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.child import LanderChild
from cloud_tier.lander.segments import begun_log
from cloud_tier.spark.driver import kill
from cloud_tier.spark.master import check_master, is_one_machine, runs_elsewhere
from cloud_tier.spark.session import MEANING, spark_session
from lasp_edge.collecting import OF_A_FLEET, collect_rarely
from lasp_edge.errors import CommandError, Exit, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl
from lasp_edge.tool.broker_options import (
    add_broker_arguments,
    broker_of,
    sink_option,
    words_for_child,
)
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.log_options import (
    add_log_arguments,
    is_json,
    set_up_logs,
    teller,
    words_of,
    write_error,
)
from lasp_edge.tool.waiting_options import Patience, add_waiting_arguments, need_numbers
from lasp_edge.units import SECOND_US

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECTION = "windows of a fleet"
_DAY_US = 86_400 * SECOND_US
_LANDS_WITHIN_S = 1.5
"""In seconds: how long a lander may take to land its segment where a person waits for the end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_lake_arguments(parser)
    add = parser.add_argument
    ends = parser.add_mutually_exclusive_group().add_argument
    ends("--until-idle", type=float, metavar="S", help="end after S seconds without anything new")
    ends("--once", action="store_true", help="merge what has landed by now, and end")
    add_waiting_arguments(parser)
    add(
        "--retain-days",
        type=float,
        default=7.0,
        metavar="D",
        help="days after its end that a window takes late readings",
    )
    add("--trigger", type=float, default=2.0, metavar="S", help="merge this often")
    add("--repair", action="store_true", help="first recompute every window from its panes")
    add("--no-lander", action="store_true", help="only merge; landers run elsewhere")
    add_log_arguments(parser)  # on info, one line for each batch
    listens = "answer Prometheus there at /metrics (HOST: 127.0.0.1)"
    add("--metrics", metavar="[HOST:]PORT", help=listens)
    add_broker_arguments(parser, required=False)
    group = parser.add_argument_group("Spark")
    group.add_argument("--master", help="where Spark runs (default: this machine)")
    group.add_argument("--conf", action="append", default=[], metavar="K=V", help="a Spark setting")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    set_up_logs(arguments, program="cloud")
    if is_json(arguments):
        os.environ["LASP_EDGE_SPARK_LOG_FORMAT"] = "json"
    broker = _broker(arguments)
    plan = load_plan(arguments.program)
    if plan.fleet_results:
        collect_rarely(OF_A_FLEET)
    patience = Patience.of(arguments, plan.windows.values())
    lake = LakeTables(arguments.lake)
    conf = _conf(arguments)
    _check(arguments)
    lake.make_place()
    lock = _locked(lake)
    try:
        return _prepared(arguments, broker, plan, lake, conf, patience)
    except CommandError as error:
        _note(lake, error)
        raise
    finally:
        if lock is not None:
            lock.close()


def _check(arguments: argparse.Namespace) -> None:
    """Check the options that are numbers, or about Spark.

    Raises:
        UsageError: they cannot work.
    """
    need_numbers(arguments, "--retain-days", "--trigger", "--until-idle")
    if arguments.master is not None:
        check_master(arguments.master)
    if arguments.metrics is not None and runs_elsewhere(arguments.master):
        raise UsageError(
            "--metrics counts what this process does, and under Spark Connect the server does it: "
            "leave it out, and look at the lake with `lasp-edge lake status`"
        )


def _note(lake: LakeTables, error: CommandError) -> None:
    """Note why a job ends; not where another goes on, or where it was refused."""
    if not isinstance(error, Superseded | UsageError):
        note_failure(lake, str(error))


def _prepared(
    arguments: argparse.Namespace,
    broker: BrokerUrl | None,
    plan: Plan,
    lake: LakeTables,
    conf: dict[str, str],
    patience: Patience,
) -> int:
    """Merge into a lake that no other job merges into."""
    begun = begun_log(arguments.log_dir or Path(lake.log)) if broker else None
    if prepare(plan, lake, begun):  # a name that was mistyped shows
        teller(arguments)(f"made a new lake in {lake.root}")
    kept = kept_days(lake)
    if kept is not None and arguments.retain_days > kept:
        raise UsageError(
            f"--retain-days {arguments.retain_days:g}: `lake retain` has left {kept} days, and "
            "windows before that would lack readings"
        )
    job = Job(
        plan,
        lake,
        roster=arguments.roster,
        dead_after_us=patience.dead_after_us,
        retain_us=round(arguments.retain_days * _DAY_US),
        tentative_after_us=patience.tentative_after_us,
    )
    feeder = broker and LanderChild(*_lander_arguments(arguments, broker, lake))
    try:
        watch = BatchWatch(job, arguments.metrics)
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        return _merge(arguments, job, conf, feeder, watch, patience)
    except KeyboardInterrupt:
        return _interrupted(feeder)
    finally:
        if feeder is not None:
            feeder.stop()
        watch.close()


def _interrupt(_number: int, _frame: object) -> None:
    """Leave whatever is under way, and have py4j say nothing of the call that is cut off."""
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt


def _interrupted(feeder: LanderChild | None) -> int:
    """End at once, whatever is under way: it is done again at the next start."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("py4j").disabled = True
    logging.disable(logging.NOTSET)
    what = InterruptedError("interrupted; what is not merged yet is merged at the next start")
    write_error("cloud", what, Exit.INTERRUPTED)
    kill()
    if feeder is not None:
        feeder.stop(_LANDS_WITHIN_S)
    return Exit.INTERRUPTED


def _merge(
    arguments: argparse.Namespace,
    job: Job,
    conf: dict[str, str],
    feeder: LanderChild | None,
    watch: BatchWatch,
    patience: Patience,
) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Exit.FINE))
    if feeder is not None:
        feeder.watch(_now_s())  # it listens while Spark starts
    began_s, say = _now_s(), teller(arguments)
    short = arguments.once or arguments.until_idle is not None
    spark = spark_session(
        app_name=f"lasp-edge {job.lake.root}",
        master=arguments.master,
        conf=conf,
        short_run=short,
        say=say,
    )
    own_combine.check(spark, job.plan)
    check_functions(job.plan, steps_run_here=steps_run_here(spark))
    if torn := mend(job.lake):
        say(torn)
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)  # `Run` logs it in a line
    merging = Run(
        spark,
        job,
        feeder,
        trigger_s=None if arguments.once else arguments.trigger,
        until_idle_s=arguments.until_idle,
        say=say,
        watch=watch if steps_run_here(spark) else None,
    )
    # Ctrl-C waits for nothing; SIGTERM lets the batch end.
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, lambda *_: merging.stop())
    say(f"Spark is ready after {_now_s() - began_s:.1f} s; merging into {job.lake.root}")
    if line := patience.in_words():
        say(line)
    for line in _made_again(spark, job, everything=arguments.repair):
        say(line)
    merging.run()
    spark.stop()
    return Exit.FINE


def _made_again(spark: "SparkSession", job: Job, *, everything: bool) -> Iterator[str]:
    """Make windows again where that is due, and yield a line for each reason."""
    if count := make_outdated(spark, job):
        yield f"{count:,} rows were made of windows that are defined otherwise than before"
    if everything:
        yield f"{repair(spark, job, recalled(job)):,} windows were recomputed otherwise"


def _broker(arguments: argparse.Namespace) -> BrokerUrl | None:
    """Return the lander's broker; None if landers run elsewhere."""
    if arguments.no_lander:
        return None
    if arguments.once:
        raise UsageError("--once merges what landers have landed: add --no-lander, and run one")
    if arguments.broker is None:
        raise UsageError("--broker is needed, unless landers run elsewhere (--no-lander)")
    if arguments.log_dir is None and "://" in arguments.lake:
        raise UsageError("a lake that is no local directory needs --log-dir DIR for the log")
    return broker_of(arguments)


def _conf(arguments: argparse.Namespace) -> dict[str, str]:
    conf = dict(LOCAL_CONF) if is_one_machine(arguments.master) else {}
    for setting in arguments.conf:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise UsageError(f"--conf K=V is needed, not {setting!r}")
        if name in MEANING:
            raise UsageError(f"--conf {name}: results depend on it, so it cannot be set")
        conf[name] = value
    return conf


def _lander_arguments(
    arguments: argparse.Namespace, broker: BrokerUrl, lake: LakeTables
) -> tuple[list[str], dict[str, str]]:
    """Return the lander's arguments, and the variables that are added to its environment."""
    wire, secrets = words_for_child(arguments, broker)
    passed_on = [arguments.program, *wire, "--lake", lake.root]
    passed_on += ["--fleet", arguments.fleet]
    passed_on += ["--sink", sink_option("--sink", arguments.sink)]
    passed_on += ["--tentative-after", arguments.tentative_after]
    if arguments.dead_after is not None:
        passed_on += ["--dead-after", str(arguments.dead_after)]
    passed_on += ["--log-dir", str(arguments.log_dir)] if arguments.log_dir else []
    passed_on += words_of(arguments)
    return passed_on, secrets


def _locked(lake: LakeTables) -> IO[str] | None:
    """Return the lock that keeps a second job off a local lake: F has one driver."""
    if not lake.is_local:
        return None
    try:
        lock = Path(lake.root, JOB_LOCK).open("a")  # noqa: SIM115 - held while the job runs
    except OSError as error:
        raise UsageError(f"--lake {lake.root} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UsageError(f"another `lasp-edge cloud` is merging into {lake.root}") from None
    note_start(lock)
    return lock


def _now_s() -> float:
    return time.monotonic()  # noqa: TID251 - the clock of the process
