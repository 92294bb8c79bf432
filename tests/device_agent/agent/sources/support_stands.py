"""A stand for each kind of source: the place it reads from, and the readings that come there.

Every stand gives the values 1, 2, 3, ... as readings of the event `temperature` (of `load` where
the machine itself is read), the same ones each time it is made.
"""

import os
import random
import sys
from collections import deque

from device_agent.agent.sources import choice, mqtt_topic
from device_agent.agent.sources.host import Host
from device_agent.agent.sources.hwmon import Hwmon
from device_agent.agent.sources.iio import Iio
from device_agent.agent.sources.onewire import OneWire
from device_agent.agent.sources.source import SourceContext
from lasp_edge.link import BrokerUrl, Message


class Stand:
    """Where one source reads, and what the source shows of it.

    Attributes:
        count: readings that come.
        ends: the source is finished after them.
        resumes: what was not acknowledged is read again after a restart.
    """

    count, ends, resumes = 5, False, False
    event = "temperature"

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        folder.mkdir()
        self.supply()

    def context(self):
        broker = BrokerUrl.parse("mqtt://127.0.0.1")
        return SourceContext([self.event], "pi-1", random.Random(1), broker)

    def supply(self):
        """Put there what is to be read, as far as it is there before the source asks."""

    def show(self, number):
        """Put there what is to be read next; called before each poll."""

    def made(self, place=""):
        name = f"{self.kind}:{place}" if place else self.kind
        return choice.source_from_spec(name, self.context())

    def close(self):
        """Close what the stand has opened."""


class RecordedStand(Stand):
    """A file of rows."""

    count, ends, resumes = 1_200, True, True

    def supply(self):
        self.path = self.folder / f"rows.{self.kind}"
        self.path.write_text(self.head + "".join(map(self.row.format, self.numbers())))

    def numbers(self):
        return range(1, self.count + 1)

    def source(self):
        return self.made(str(self.path))


class JsonLinesStand(RecordedStand):
    kind, head, row = "jsonl", "", '{{"temperature": {}}}\n'


class CsvStand(RecordedStand):
    kind, head, row = "csv", "temperature\n", "{}\n"


class KeptSession:
    """A link and its broker: what was not acknowledged comes again over the next link."""

    def __init__(self, payloads):
        self.payloads, self.acknowledged = payloads, set()

    def __call__(self, *_broker, **_settings):
        left = [number for number in range(len(self.payloads)) if number not in self.acknowledged]
        self.queue = deque(
            Message("temperature", self.payloads[number], retain=False, qos=1, token=(1, number))
            for number in left
        )
        return self

    def poll(self, timeout_s):
        assert timeout_s == 0, "a source never waits"
        return [self.queue.popleft() for _ in range(min(2, len(self.queue)))]

    def acknowledge(self, message):
        self.acknowledged.add(message.token[1])

    def start(self):
        """Nothing to connect."""

    stop = start


class MqttStand(Stand):
    kind, resumes = "mqtt", True

    def supply(self):
        self.session = KeptSession([b"%d" % (number + 1) for number in range(self.count)])

    def source(self):
        self.monkeypatch.setattr(mqtt_topic, "Link", self.session)
        return self.made("temperature")


class StdinStand(Stand):
    kind, ends = "stdin", True

    def supply(self):
        reading, self.writing = os.pipe()
        self.input, self.written = os.fdopen(reading), 0

    def show(self, number):
        if number < self.count and number == self.written:
            os.write(self.writing, b'{"temperature": %d}\n' % (number + 1))
            self.written += 1
        elif number == self.count and self.writing is not None:
            os.close(self.writing)
            self.writing = None

    def source(self):
        self.monkeypatch.setattr(sys, "stdin", self.input)
        return self.made()

    def close(self):
        self.show(self.count)
        self.input.close()


class KernelStand(Stand):
    """A file of the kernel's, which shows the newest value."""

    def supply(self):
        self.file = self.folder / self.where
        self.file.parent.mkdir(parents=True)
        (self.file.parent / "name").write_text("chip\n")
        self.show(0)

    def show(self, number):
        self.file.write_text(self.text.format(number + 1))

    def source(self):
        return self.of_kind(self.kind, self.context(), self.folder)


class HostStand(KernelStand):
    kind, event, where, text = "host", "load", "proc/loadavg", "{}.00 0.1 0.1 1/99 1234\n"

    def source(self):
        return Host([self.event], root=self.folder)


class HwmonStand(KernelStand):
    kind, of_kind = "hwmon", Hwmon
    where, text = "sys/class/hwmon/hwmon0/temp1_input", "{}000\n"


class IioStand(KernelStand):
    kind, of_kind = "iio", Iio
    where, text = "sys/bus/iio/devices/iio:device0/in_temp_input", "{}000\n"


class OneWireStand(KernelStand):
    """Its sensors are read elsewhere than in `poll`: here, before the next poll."""

    kind, where = "onewire", "sys/bus/w1/devices/28-000005e2fdc3/w1_slave"
    text = "50 05 : crc=1c YES\n50 05 t={}000\n"

    def supply(self):
        self.work = []
        super().supply()

    def show(self, number):
        super().show(number)
        while self.work:
            self.work.pop()()

    def source(self):
        return OneWire(self.kind, self.context(), self.folder, self.work.append)


STANDS = {
    stand.kind: stand
    for stand in (
        *(HostStand, JsonLinesStand, CsvStand, MqttStand),
        *(StdinStand, HwmonStand, IioStand, OneWireStand),
    )
}
"""Kind of source -> its stand; a kind without one fails the suite."""
