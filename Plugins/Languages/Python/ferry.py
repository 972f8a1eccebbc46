"""Ferry's framings for Python: ferry.h by ctypes, and a channel for asyncio over any link.

A `Session` is one side of one link. It does no I/O and has no clock: the caller moves the bytes and says the time, in
nanoseconds since any moment of its choice. `Channel` does both for a link of asyncio, such as bleak's.

The library is libferry.so beside this file, which `scripts/firmware python` builds, or the file that FERRY_LIBRARY names.
"""

import asyncio
import collections
import ctypes
import dataclasses
import os
import pathlib
import time
from collections.abc import Awaitable, Callable
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

NOTHING = 1
# What a message that waits to be read counts besides its bytes.
_MESSAGE_COST = 64
ERROR_ARGUMENT = -1
ERROR_BUFFER = -2
ERROR_ORDER = -3
ERROR_FULL = -4
# The errors that end a session, or the message that an event names.
ERROR_NAMES = {
    ERROR_ARGUMENT: "argument",
    ERROR_BUFFER: "buffer too small",
    ERROR_ORDER: "call out of order",
    ERROR_FULL: "limit reached",
    -16: "message too large",
    -17: "not text",
    -18: "chunk size too small",
    -19: "malformed stream",
    -20: "incompatible peer",
    -21: "peer lost state",
    -22: "truncated message",
    -23: "timed out",
    -24: "cancelled by peer",
    -25: "configuration",
    -63: "other",
}
PREFIXES = {"varint": 0, "16-big": 1, "16-little": 2, "32-big": 3, "32-little": 4}
CODECS = {"untold": 0, "bytes": 1, "text": 2, "json": 3, "property-list": 4, "cbor": 5}


class FerryError(Exception):
    """An error of ferry.h: its number in `code`, and what the library says of it."""

    def __init__(self, code: int, text: str = ""):
        name = ERROR_NAMES.get(code, "unknown")
        super().__init__(f"{name} ({code}){': ' + text if text else ''}")
        self.code = code
        self.text = text


@dataclasses.dataclass
class Limits:
    """What one session may hold; ferry.h says more of each. Sizes are in bytes, `stall` in seconds."""

    message: int = 4096
    outbound: int = 8192
    outbound_messages: int = 16
    inbound: int = 8192
    stall: float = 60.0


@dataclasses.dataclass
class Received:
    """A message arrived."""

    message: bytes


@dataclasses.dataclass
class Progress:
    """`count` bytes of message `number` have been accepted: by the link, or, sequenced, by the peer."""

    number: int
    count: int


@dataclasses.dataclass
class Sent:
    """Message `number` is out: handed to the link, or, sequenced, with the peer."""

    number: int


@dataclasses.dataclass
class Failed:
    """Message `number` cannot be sent. The session goes on."""

    number: int
    error: FerryError


@dataclasses.dataclass
class ReceiveFailed:
    """Something that arrived was lost. The session goes on."""

    error: FerryError


Event = Received | Progress | Sent | Failed | ReceiveFailed


class _Limits(ctypes.Structure):
    _fields_ = [
        ("message_bytes", c_uint32), ("outbound_bytes", c_uint32), ("outbound_messages", c_uint32),
        ("inbound_bytes", c_uint32), ("stall_nanoseconds", c_int64),
    ]  # fmt: skip


class _Event(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("error", c_int32), ("number", c_uint64), ("count", c_size_t)]


# Without the result, which is a status in all of them.
_FUNCTIONS = {
    "ferry_create_end_of_message": [POINTER(_Limits), c_char_p, c_size_t, c_uint32, POINTER(c_void_p)],
    "ferry_create_length_prefix": [POINTER(_Limits), c_int32, POINTER(c_void_p)],
    "ferry_create_sequenced_for": [POINTER(_Limits), c_uint32, c_uint32, c_uint32, POINTER(c_void_p)],
    "ferry_link_opened": [c_void_p, c_int64],
    "ferry_link_closed": [c_void_p, c_int64],
    "ferry_enqueue": [c_void_p, c_char_p, c_size_t, POINTER(c_uint64), c_int64],
    "ferry_cancel": [c_void_p, c_uint64, c_int64],
    "ferry_next_chunk": [c_void_p, c_void_p, c_size_t, POINTER(c_size_t), c_int64],
    "ferry_receive": [c_void_p, c_char_p, c_size_t, c_int64],
    "ferry_next_event": [c_void_p, POINTER(_Event), c_void_p, c_size_t, c_int64],
    "ferry_deadline": [c_void_p, POINTER(c_int64)],
    "ferry_wake": [c_void_p, c_int64],
    "ferry_error_text": [c_void_p, c_void_p, c_size_t],
}


def _load() -> ctypes.CDLL:
    path = pathlib.Path(os.environ.get("FERRY_LIBRARY") or pathlib.Path(__file__).with_name("libferry.so"))
    if not path.exists():
        raise ImportError(f"{path} is missing. Build it with scripts/firmware python, or name it in FERRY_LIBRARY.")
    library = ctypes.CDLL(str(path))
    for name, arguments in _FUNCTIONS.items():
        getattr(library, name).argtypes = arguments
        getattr(library, name).restype = c_int32
    library.ferry_destroy.argtypes = [c_void_p]
    library.ferry_destroy.restype = None
    return library


_library = _load()


class Session:
    """One side of one link. Make it with `end_of_message`, `length_prefix` or `sequenced`; one thread uses it at a time.

    Each method raises `FerryError`. A code above -16 is the caller's own mistake and changes nothing; after any other the
    session is at its end, or, sequenced, waits for the next link.
    """

    def __init__(self, create: str, limits: Limits | None, *arguments):
        self._session = c_void_p()
        self.limits = given = limits or Limits()
        self.survives_loss = create == "ferry_create_sequenced_for"
        numbers = (given.message, given.outbound, given.outbound_messages, given.inbound)
        # ctypes would cut numbers to 32 bits.
        if not all(0 <= number < 1 << 32 for number in numbers) or not 0 < given.stall < 9e9:
            raise FerryError(ERROR_ARGUMENT, "a limit is out of its range")
        native = _Limits(*numbers, int(given.stall * 1_000_000_000))
        self._check(getattr(_library, create)(byref(native), *arguments, byref(self._session)))
        self._buffer = ctypes.create_string_buffer(512)

    @classmethod
    def end_of_message(cls, limits: Limits | None = None, marker: bytes = b"EOM", chunk: int = 0) -> "Session":
        """`marker`, of 2 to 20 bytes, ends a message. No chunk has more than `chunk` bytes; 0 for what the link takes."""
        return cls("ferry_create_end_of_message", limits, marker, len(marker), _unsigned(chunk, 32))

    @classmethod
    def length_prefix(cls, limits: Limits | None = None, prefix: str = "varint") -> "Session":
        """`prefix` is one of PREFIXES."""
        return cls("ferry_create_length_prefix", limits, PREFIXES.get(prefix, -1))

    @classmethod
    def sequenced(
        cls, limits: Limits | None = None, identifier: int | None = None, window: int = 32, codec: str | int = "untold"
    ) -> "Session":
        """`identifier` differs from those of sessions before: a random number unless it is given. `codec` is told to the
        peer, which must tell the same: one of CODECS, or from 64 to 255 a number of one's own. Channels in Swift tell theirs.
        """
        if identifier is None:
            identifier = int.from_bytes(os.urandom(4))
        codec = codec if isinstance(codec, int) else CODECS.get(codec, -1)
        return cls(
            "ferry_create_sequenced_for", limits, _unsigned(identifier, 32), _unsigned(window, 32), _unsigned(codec, 32))

    def __del__(self):
        if getattr(self, "_session", None):
            _library.ferry_destroy(self._session)

    def _check(self, status: int) -> int:
        if status >= 0:
            return status
        text = ctypes.create_string_buffer(512)
        if self._session and status <= -16:
            _library.ferry_error_text(self._session, text, len(text))
        raise FerryError(status, text.value.decode(errors="replace"))

    def link_opened(self, now: int) -> None:
        """A link carries this session's chunks from now on."""
        self._check(_library.ferry_link_opened(self._session, now))

    def link_closed(self, now: int) -> None:
        """The link has ended."""
        self._check(_library.ferry_link_closed(self._session, now))

    def enqueue(self, message: bytes, now: int) -> int:
        """Takes a message to be sent, and returns its number."""
        number = c_uint64()
        self._check(_library.ferry_enqueue(self._session, bytes(message), len(message), byref(number), now))
        return number.value

    def cancel(self, number: int, now: int) -> bool:
        """Takes a message back. Returns whether the peer will not get it."""
        return self._check(_library.ferry_cancel(self._session, _unsigned(number, 64), now)) != NOTHING

    def next_chunk(self, capacity: int, now: int) -> bytes | None:
        """Returns the next chunk, of at most `capacity` bytes, or None. It counts as sent."""
        if capacity > len(self._buffer):
            self._buffer = ctypes.create_string_buffer(capacity)
        count = c_size_t()
        status = _library.ferry_next_chunk(self._session, self._buffer, max(capacity, 0), byref(count), now)
        return None if self._check(status) == NOTHING else self._buffer.raw[: count.value]

    def receive(self, chunk: bytes, now: int) -> None:
        """Takes a chunk that arrived, as it was sent."""
        self._check(_library.ferry_receive(self._session, bytes(chunk), len(chunk), now))

    def next_event(self, now: int) -> Event | None:
        """Returns what happened, oldest first, or None."""
        event = _Event()
        while True:
            status = _library.ferry_next_event(
                self._session, byref(event), self._buffer, len(self._buffer), now)
            if status != ERROR_BUFFER:
                break
            self._buffer = ctypes.create_string_buffer(event.count)
        if self._check(status) == NOTHING:
            return None
        match event.kind:
            case 1:
                return Received(self._buffer.raw[: event.count])
            case 2:
                return Progress(event.number, event.count)
            case 3:
                return Sent(event.number)
            case 4:
                return Failed(event.number, FerryError(event.error))
            case _:
                return ReceiveFailed(FerryError(event.error))

    def deadline(self) -> int | None:
        """Returns when to call `wake`, or None. Ask again after each other call."""
        at = c_int64()
        return None if self._check(_library.ferry_deadline(self._session, byref(at))) == NOTHING else at.value

    def wake(self, now: int) -> None:
        """Says that a deadline may have come."""
        self._check(_library.ferry_wake(self._session, now))


def _unsigned(number: int, bits: int) -> int:
    if not 0 <= number < 1 << bits:
        raise FerryError(ERROR_ARGUMENT, f"{number} is no unsigned number of {bits} bits")
    return number


class Channel:
    """Messages over a link, for asyncio. One event loop uses it.

    `write` sends a chunk and returns when the link takes the next; `capacity` returns how many bytes the link takes at
    once, for GATT what a value holds: ATT_MTU less 3. The caller hands what arrives to `received`, and calls `close` when
    the link has ended. With `Limits.inbound` bytes unread the channel fetches no more events, so that sends end later
    too: the sequenced framing stops its peer then, the others end with ERROR_FULL.
    """

    def __init__(
        self, session: Session, write: Callable[[bytes], Awaitable[None]], capacity: Callable[[], int],
        progress: Callable[[int, int], None] | None = None,
    ):  # fmt: skip
        self._session = session
        self._write = write
        self._capacity = capacity
        self._progress = progress
        self._pending: dict[int, asyncio.Future] = {}
        self._messages: collections.deque[bytes] = collections.deque()
        self._outcomes: list[Event] = []
        self._unread = 0
        self._arrived = asyncio.Event()
        self._moved = asyncio.Event()
        self._error: FerryError | None = None
        session.link_opened(time.monotonic_ns())
        self._moved.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def send(self, message: bytes) -> None:
        """Sends a message and waits until it is out. Cancelled, it takes the message back if it can.

        Raises FerryError: ERROR_FULL when too much waits already, and the channel's error when it has ended."""
        if self._error:
            raise self._error
        number = self._session.enqueue(message, time.monotonic_ns())
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        self._moved.set()
        try:
            await future
        except asyncio.CancelledError:
            if not self._error:
                self._session.cancel(number, time.monotonic_ns())
            raise
        finally:
            self._pending.pop(number, None)

    async def receive(self) -> bytes:
        """Waits for the next message. Raises the channel's error when it has ended and all messages have been received."""
        while not self._messages:
            if self._error:
                raise self._error
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        self._unread -= len(message) + _MESSAGE_COST
        if not self._error:
            self._fetch()
            self._moved.set()
        return message

    def received(self, chunk: bytes) -> None:
        """Takes a chunk from the link."""
        if self._error:
            return
        try:
            self._session.receive(chunk, time.monotonic_ns())
        except FerryError as error:
            # The sequenced framing's peer sends again what is dropped.
            if error.code != ERROR_FULL or not self._session.survives_loss:
                return self._end(error)
        self._fetch()
        self._moved.set()

    def close(self) -> None:
        """Ends the channel: sends that wait fail, `receive` returns what has arrived and then fails."""
        if self._error:
            return
        try:
            self._session.link_closed(time.monotonic_ns())
            self._end(FerryError(ERROR_ORDER, "the channel is closed"))
        except FerryError as error:
            self._end(error)

    def _end(self, error: FerryError) -> None:
        if self._error:
            return
        self._fetch()
        self._error = error
        for future in self._pending.values():
            if not future.done():
                future.set_exception(error)
        self._arrived.set()
        self._moved.set()

    def _fetch(self) -> None:
        """Delivers what has arrived. What became of messages that are sent is told by `_settle`."""
        while self._unread < self._session.limits.inbound and (event := self._session.next_event(time.monotonic_ns())):
            if not isinstance(event, Received):
                self._outcomes.append(event)
                continue
            self._messages.append(event.message)
            self._unread += len(event.message) + _MESSAGE_COST
            self._arrived.set()

    def _settle(self) -> None:
        """Tells what became of messages, once the link has taken the chunk that is being written."""
        outcomes, self._outcomes = self._outcomes, []
        for event in outcomes:
            future = self._pending.get(event.number) if not isinstance(event, ReceiveFailed) else None
            match event:
                case Progress(number, count) if self._progress:
                    self._progress(number, count)
                case Sent() if future and not future.done():
                    future.set_result(None)
                case Failed(_, error) if future and not future.done():
                    future.set_exception(error)

    async def _run(self) -> None:
        """Moves chunks and wakes the session until the channel ends."""
        try:
            while not self._error:
                self._moved.clear()
                while chunk := self._session.next_chunk(self._capacity(), time.monotonic_ns()):
                    await self._write(chunk)
                    if self._error:
                        return
                    self._fetch()
                    self._settle()
                self._fetch()
                self._settle()
                at = self._session.deadline()
                wait = None if at is None else max(0, at - time.monotonic_ns()) / 1e9
                try:
                    await asyncio.wait_for(self._moved.wait(), wait)
                except TimeoutError:
                    self._session.wake(time.monotonic_ns())
        except FerryError as error:
            self._end(error)
        except Exception as error:
            self._end(FerryError(-63, f"the link refused a chunk: {error}"))
