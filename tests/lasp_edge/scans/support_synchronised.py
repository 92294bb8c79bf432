"""Synchronised scans after the examples and benchmarks of Flumina, and programs of them.

Source: github.com/angelhof/flumina (MIT, Kallas, Niksic and Stanford), `experiments/examples`; the
fraud detection and the page views are those of its experiments.
"""

from lasp_edge import Program, scans


class ValueBarrier(scans.Synchronised):
    """The sum of all values so far, at each barrier (`abexample`)."""

    name, zero, empty, parts = "value_barrier", 0, 0, {"sum": "1"}
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        return (state, [state]) if event.name == "b" else (state + round(event.value), [])

    def join(self, state, part):
        return state + part


class EventWindow(ValueBarrier):
    """The sum since the barrier before."""

    name = "event_window"

    def step(self, state, event):
        return (0, [state]) if event.name == "b" else (state + round(event.value), [])


class MaxTemp(scans.Synchronised):
    """The greatest value since it was last asked for; none is not 0."""

    name, zero, parts = "max_temp", (), {"max": "1"}
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        if event.name == "b":
            return (), state
        return ((max(*state, event.value),) if state else (event.value,)), []

    def share(self, state):
        return state

    def join(self, state, part):
        return max(state, part)


class Modulo(scans.Synchronised):
    """Fraud: values that end like the model, which each barrier sets (`abexample`)."""

    name, zero, parts = "modulo", (0, 0), {"kind": "text", "value": "1"}
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        (total, model), value = state, round(event.value)
        if event.name == "b":
            return (total, (value + 1) % 100), [("sum", total)]
        return (total + value, model), [("hit", value)] if value % 100 == model else []

    def share(self, state):
        return 0, state[1]

    def join(self, state, part):
        return state[0] + part[0], state[1]


class Outliers(scans.Synchronised):
    """Values far from the mean, by the model of the newest barrier (`outlier_detection`)."""

    name, parts, zero = "outliers", {"value": "1"}, ((0, 0, 0), (0, 0, 0))
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        (n, t, q), sums = state
        if event.name == "b":
            return (sums, sums), []
        x = round(event.value)
        odd = n > 1 and (n * x - t) ** 2 > 2 * (n * q - t * t)
        return ((n, t, q), (sums[0] + 1, sums[1] + x, sums[2] + x * x)), [x] if odd else []

    def share(self, state):
        return state[0], (0, 0, 0)

    def join(self, state, part):
        return state[0], tuple(map(sum, zip(state[1], part[1], strict=True)))


class PageViews(scans.Synchronised):
    """Each view with the newest metadata of its page (`stream_table_join_example`)."""

    name, parts, zero = "page_views", {"kind": "text", "view": "1", "page": "1"}, -1
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        value = round(event.value)
        if event.name == "b":
            return value, [("was", value, state)]
        return state, [("view", value, state)]

    def share(self, state):
        return state

    def join(self, state, part):
        return state


class SmartHome(scans.Synchronised):
    """A pressure that jumped while all rooms were warm, by the minute (`smart_home_example`).

    The state has a map of the greatest temperature by thermometer, and one of (last pressure,
    greatest jump since the minute, has it measured in this minute) by device.
    """

    name, parts, zero = "smart_home", {"spike": "1", "least": "1"}, ((), ())
    depends = (("minute", "warm"), ("minute", "pressure"), ("minute", "minute"))

    def step(self, state, event):
        rooms, meters = map(dict, state)
        if event.name == "minute":
            spike = max([jump for _, jump, _ in meters.values()], default=0)
            least = min(rooms.values(), default=0)
            alert = [(spike, least)] if spike >= 100 and least >= 50 else []
            calm = {device: (last, 0, False) for device, (last, _, _) in meters.items()}
            return _maps({}, calm), alert
        value = round(event.value)
        if event.name == "warm":
            rooms[event.device] = max(value, rooms.get(event.device, 0))
        else:
            last, jump, _ = meters.get(event.device, (0, 0, False))
            meters[event.device] = value, max(value - last, jump), True
        return _maps(rooms, meters), []

    def share(self, state):
        return (), state[1]

    def join(self, state, part):
        rooms, meters = map(dict, state)
        measured = {device: found for device, found in part[1] if found[2]}
        return _maps(rooms | dict(part[0]), meters | measured)


def _maps(rooms, meters):
    return tuple(sorted(rooms.items())), tuple(sorted(meters.items()))


class Energy(scans.Synchronised):
    """Load and number of readings of a slice, and a guess of the next one (`debs_2014_query1`)."""

    name, parts = "energy", {"watts": "0.001", "count": "1", "next": "0.001"}
    zero = empty = (0, 0, ())
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        count, total, before = state
        if event.name == "a":
            return (count + 1, total + round(event.value * 1000), before), []
        mean = sum(before) // max(len(before), 1)
        row = total / 1000, count, (total + mean) // 2 / 1000
        return (0, 0, (*before, total)[-48:]), [row]

    def join(self, state, part):
        return state[0] + part[0], state[1] + part[1], state[2]


class Epochs(scans.Synchronised):
    """Each item carries the share that it was stepped under, so that a torn row shows.

    A row has the epoch, how many items it has, and the sum of the epochs of its items.
    """

    name, zero, parts = "epochs", (1, 0, 0), {"epoch": "1", "count": "1", "sum": "1"}
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        epoch, count, total = state
        if event.name == "b":
            return ((epoch * 31 + count + 7) % 1009, 0, 0), [state]
        return (epoch, count + 1, total + epoch), []

    def share(self, state):
        return state[0], 0, 0

    def join(self, state, part):
        return state[0], state[1] + part[1], state[2] + part[2]


SCANS = (
    ValueBarrier,
    EventWindow,
    MaxTemp,
    Modulo,
    Outliers,
    PageViews,
    SmartHome,
    Energy,
    Epochs,
)


def house_of(event):
    return event.tags["house"]


def program_of(kind, *, names=(), key=house_of, resolution="1", **options):
    """Return a program with one synchronised scan and its result."""
    program = Program(kind.name)
    names = names or kind().tells_apart
    sources = [program.event(name, resolution=resolution) for name in names]
    program.result(program.scan("found", source=sources, scan=kind, key=key, **options))
    return program
