"""The contract of a source of readings, and of its row in the table of sources.

A source is one file here: a class with the methods of `Source`, the command-line options that it
has for itself, and a `SourceKind` that names all of it. `choice.KINDS` lists the kinds.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from device_agent.agent.intake.batch import Batch
from lasp_edge.link import BrokerUrl

Value = TypeVar("Value")


class Source(Protocol):
    """Gives readings when it is asked; the agent says when they are durable.

    A source that has nothing to resume, to acknowledge or to close leaves those methods out.

    Attributes:
        name: stable over restarts; the cursor and the low watermark are kept under it.
        replayable: what was not read yet can be read as well later.
        news: what was found wrong when it was opened, and mended; `status` keeps it. "" if nothing.
    """

    name: str
    replayable: bool = False
    news: str = ""

    @property
    def has_own_times(self) -> bool:
        """Whether its readings may carry their own time; else the agent stamps them."""
        return True

    def open(self, cursor: str | None) -> None:  # noqa: ARG002 - the contract
        """Begin, or resume behind the place that `cursor` stands for.

        Raises:
            ValueError: the source cannot be read, or not from there.
        """
        return

    def poll(self, now_us: int) -> Batch | None:
        """Return what there is, up to some 500 rows; None if there is nothing. Never waits.

        It is asked again at once where the batch says when it arrived: there may be later ones.
        """

    def due_us(self, now_us: int) -> int | None:
        """Return when to poll next; None if it is finished."""

    def acknowledge(self, cursor: str | None) -> None:  # noqa: ARG002 - the contract
        """Take note that the batch with this cursor, and all before it, are durable."""
        return

    @property
    def is_full(self) -> bool:
        """Whether it gives nothing more before what it gave is acknowledged."""
        return False

    def close(self) -> None:
        """Close files and connections."""
        return

    def says(self) -> str:
        """Return what people should know at the start, such as which sensors it found."""
        return ""


class Option(NamedTuple, Generic[Value]):
    """A command-line option of one kind of source, or of several.

    Attributes:
        name: the option without its dashes, such as `with-tag`.
        default: its value where it is not given.
        parse: returns the value that a text means, or a list of texts if the option `repeats`;
            raises ValueError for a text that is not a value.
        help, metavar, choices: for the command's help.
        repeats: it may be given several times.
        is_flag: it stands alone; `parse` is given True.
        of_toml: returns the value that stands in a configuration file; raises ValueError for what
            is not a value. None: a text is needed there, and `parse` is given it.
        in_files_only: it has no place on the command line.
        former: other names of it that still work.
    """

    name: str
    default: Value
    parse: Callable[[Any], Value]
    help: str
    metavar: str | None = None
    choices: Sequence[str] | None = None
    repeats: bool = False
    is_flag: bool = False
    of_toml: Callable[[Any], Value] | None = None
    in_files_only: bool = False
    former: Sequence[str] = ()

    def of_file(self, given: Any) -> Value:
        """Return the value that stands in a configuration file.

        Raises:
            ValueError: it is not a value; the text says what is needed, and what came.
        """
        if self.of_toml is not None:
            return self.of_toml(given)
        if self.is_flag:
            if type(given) is not bool:
                raise ValueError(f"true or false is needed, not {given!r}")
            return self.parse(given)
        if type(given) is not str:
            raise ValueError(f"a text in quotation marks is needed, not {given!r}")
        return self.parse(given)


class SourceContext(NamedTuple):
    """The facts about an agent that its sources may use.

    Attributes:
        events: the names of the program's events.
        device: the device's id.
        jitter: seeded; for waits between tries to connect.
        broker: the agent's broker.
        options: option's name -> value; those that are not given are not in it.
        texts: those of the events whose readings are texts.
        first_us: a number that means an earlier time is no date of a sensor.
        show: is given each message or record as it came, by a source that is only tried: it gives
            one at a time, and leaves nothing at a broker; None: the source is read.
        fleet: its name: agents of two fleets on one machine may share a device's id, and read the
            same.
    """

    events: Sequence[str]
    device: str
    jitter: Random
    broker: BrokerUrl | None = None
    options: Mapping[str, Any] = {}
    texts: Collection[str] = ()
    first_us: int = 0
    show: Callable[[str], None] | None = None
    fleet: str = ""

    def get(self, option: Option[Value]) -> Value:
        """Return the value of an option."""
        value: Value = self.options.get(option.name, option.default)
        return value


class SourceKind(NamedTuple):
    """One kind of source: a row of the table of sources.

    Attributes:
        name: what stands before the colon of `--source`.
        place: what stands after the colon, for the help; empty for a kind without a colon.
        make: returns a source; it is given the whole text, which is the source's name, the part
            after the colon, and the context. It raises ValueError where that cannot work.
        options: what `make` reads from the context.
        key: what a configuration file calls the part after the colon.
    """

    name: str
    place: str
    make: Callable[[str, str, SourceContext], Source]
    options: Sequence[Option[Any]] = ()
    key: str = "place"

    @property
    def form(self) -> str:
        """The text that a user writes, such as `jsonl:PATH`."""
        return f"{self.name}:{self.place}" if self.place else self.name


def pair_option(
    name: str,
    form: str,
    help: str,  # noqa: A002
    of_toml: Callable[[Any], Mapping[str, Any]] | None = None,
) -> Option[Mapping[str, Any]]:
    """Return an option that is given as `form`, such as NAME=FIELD, any number of times."""

    def parse(texts: Sequence[str]) -> Mapping[str, str]:
        pairs = {}
        for text in texts:
            left, sign, right = map(str.strip, text.partition("="))
            if not sign or not left or not right:
                raise ValueError(f"--{name} {form} is needed, not {text!r}")
            pairs[left] = right
        return pairs

    of_toml = of_toml or (lambda table: pairs_of_table(name, table))
    return Option(name, {}, parse, help, form, repeats=True, of_toml=of_toml)


def pairs_of_table(name: str, table: Any) -> Mapping[str, str]:
    """Return a table of texts in a configuration file.

    Raises:
        ValueError: it is not one.
    """
    if type(table) is not dict or not all(type(text) is str for text in table.values()):
        raise ValueError(f'a table such as {name} = {{ NAME = "TEXT" }} is needed, not {table!r}')
    return table


def number_of_toml(given: Any) -> str:
    """Return a number in a configuration file as text.

    Raises:
        ValueError: it is not a number.
    """
    if isinstance(given, bool) or not isinstance(given, int | Decimal):
        raise ValueError(f"a number is needed, not {given!r}")
    return str(given)


def texts_of_toml(given: Any) -> Sequence[str]:
    """Return a list of texts in a configuration file.

    Raises:
        ValueError: it is not one.
    """
    if type(given) is not list or not all(type(text) is str for text in given):
        raise ValueError(f'a list of texts such as ["a", "b"] is needed, not {given!r}')
    return tuple(given)


def texts_in_file(name: str, text: str) -> Option[Iterable[str]]:
    """Return an option that is a list of texts, and stands in configuration files only."""
    return Option(name, (), tuple, text, of_toml=texts_of_toml, in_files_only=True)


def table_in_file(name: str, text: str) -> Option[Mapping[str, str]]:
    """Return an option that is a table of texts, and stands in configuration files only."""

    def of_toml(table: Any) -> Mapping[str, str]:
        return pairs_of_table(name, table)

    return Option(name, {}, dict, text, of_toml=of_toml, in_files_only=True)
