"""The golden vectors of Tests/Vectors, bad input, and channels over links in memory.

FERRY_PACKAGE is the folder with ferry.py and its library (scripts/far-end python).
"""

import asyncio
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.environ["FERRY_PACKAGE"])
import ferry

VECTORS = pathlib.Path(__file__).parents[4] / "Tests/Vectors"


def cases(file):
    """Each case as its name and its lines, a line as its words."""
    found = []
    for line in (VECTORS / file).read_text().splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "case":
            found.append((line[5:], []))
        else:
            found[-1][1].append(words)
    return found


def data(word):
    return b"" if word == "-" else bytes.fromhex(word)


class Exchange:
    """Two sessions, and the lines of a case done to them."""

    def __init__(self):
        self.limits = ferry.Limits()
        self.link, self.now = 20, 0
        self.sides = {}

    def make(self, framing, words):
        match framing:
            case "eom":
                return [ferry.Session.end_of_message(self.limits, data(words[0]), int(words[1])) for _ in range(2)]
            case "length":
                return [ferry.Session.length_prefix(self.limits, words[0]) for _ in range(2)]
            case "sequenced":
                return [ferry.Session.sequenced(self.limits, int(words[side], 16), int(words[0])) for side in (1, 2)]
        raise ValueError(framing)

    def event(self, side):
        while isinstance(event := self.sides[side].next_event(self.now), ferry.Progress | ferry.Sent):
            pass
        return event

    def status(self, call, *arguments):
        try:
            call(*arguments, self.now)
            return 0
        except ferry.FerryError as error:
            return error.code

    def do(self, words):
        """Returns what differs from the line, or None."""
        match words:
            case ["limits", message, inbound]:
                self.limits = ferry.Limits(message=int(message), inbound=int(inbound))
            case ["framing", name, *rest]:
                self.sides = dict(zip("ab", self.make(name, rest)))
                for session in self.sides.values():
                    session.link_opened(0)
            case ["link", size]:
                self.link = int(size)
            case ["time", now]:
                self.now = int(now)
            case [side, "send", message, *error]:
                return self.compare(self.status(self.sides[side].enqueue, data(message)), error)
            case [side, "chunk" | "lost" as fate, expected, *error]:
                chunk = self.sides[side].next_chunk(self.link, self.now)
                if chunk != data(expected):
                    return f"{chunk.hex() if chunk else 'no chunk'}"
                if fate == "chunk":
                    other = self.sides["b" if side == "a" else "a"]
                    return self.compare(self.status(other.receive, chunk), error)
            case [side, "idle", *error]:
                try:
                    if chunk := self.sides[side].next_chunk(self.link, self.now):
                        return f"the chunk {chunk.hex()}"
                    return self.compare(0, error)
                except ferry.FerryError as refusal:
                    return self.compare(refusal.code, error)
            case [side, "take", chunk, *error]:
                return self.compare(self.status(self.sides[side].receive, data(chunk)), error)
            case [side, "message", expected]:
                if (event := self.event(side)) != ferry.Received(data(expected)):
                    return f"{event}"
            case [side, "failed", number, error]:
                event = self.event(side)
                if not isinstance(event, ferry.Failed) or (event.number, event.error.code) != (int(number), int(error)):
                    return f"{event}"
            case [side, "dropped", error]:
                event = self.event(side)
                if not isinstance(event, ferry.ReceiveFailed) or event.error.code != int(error):
                    return f"{event}"
            case [side, "nothing"]:
                if event := self.event(side):
                    return f"{event}"
            case [side, "cancel", number, taken]:
                if self.sides[side].cancel(int(number), self.now) != (taken == "taken"):
                    return f"not {taken}"
            case [side, "wake", *error]:
                return self.compare(self.status(self.sides[side].wake), error)
            case [side, "open", *error]:
                return self.compare(self.status(self.sides[side].link_opened), error)
            case [side, "close", *error]:
                return self.compare(self.status(self.sides[side].link_closed), error)
            case _:
                return "an unknown line"
        return None

    @staticmethod
    def compare(status, error):
        expected = int(error[0]) if error else 0
        return None if status == expected else f"error {status}"


class Vectors(unittest.TestCase):
    def test_framings(self):
        count = 0
        for file in ("framing-eom", "framing-length", "framing-sequenced", "exchanges-sequenced"):
            for name, lines in cases(f"{file}.txt"):
                with self.subTest(file=file, case=name):
                    exchange = Exchange()
                    for words in lines:
                        self.assertIsNone(exchange.do(words), " ".join(words))
                        count += 1
        self.assertGreater(count, 200)


class BadInput(unittest.TestCase):
    def refused(self, call, *arguments, code=ferry.ERROR_ARGUMENT):
        with self.assertRaises(ferry.FerryError) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.code, code)

    def test_codec_is_told(self):
        for codec, number in (("untold", 0), ("json", 3), ("cbor", 5), (64, 64), (255, 255)):
            session = ferry.Session.sequenced(identifier=1, codec=codec)
            session.link_opened(0)
            # Sequenced.md: byte 9 of a hello.
            self.assertEqual(session.next_chunk(20, 0)[9], number)

    def test_configurations(self):
        self.refused(ferry.Session.length_prefix, None, "8")
        self.refused(ferry.Session.sequenced, None, 1, 0)
        self.refused(ferry.Session.sequenced, None, 1, 65)
        self.refused(ferry.Session.sequenced, None, -1)
        self.refused(ferry.Session.sequenced, None, 1 << 32)
        for codec in ("jsn", 6, 63, 256, -1):
            self.refused(ferry.Session.sequenced, None, 1, 8, codec)
        self.refused(ferry.Session.end_of_message, None, b"E")
        self.refused(ferry.Session.end_of_message, None, bytes(21))
        self.refused(ferry.Session.end_of_message, None, b"EOM", 2)
        for limits in (
            ferry.Limits(message=1 << 25), ferry.Limits(message=-1), ferry.Limits(message=1 << 32), ferry.Limits(stall=0),
            ferry.Limits(outbound_messages=0), ferry.Limits(stall=1e30),
        ):  # fmt: skip
            self.refused(ferry.Session.length_prefix, limits)

    def test_calls(self):
        session = ferry.Session.length_prefix()
        self.refused(session.next_chunk, 20, 0, code=ferry.ERROR_ORDER)
        self.refused(session.receive, b"1", 0, code=ferry.ERROR_ORDER)
        session.link_opened(0)
        self.refused(session.link_opened, 0, code=ferry.ERROR_ORDER)
        self.refused(session.enqueue, bytes(4097), 0, code=-16)
        self.refused(session.next_chunk, 0, 0, code=ferry.ERROR_BUFFER)
        self.refused(session.next_chunk, -1, 0, code=ferry.ERROR_BUFFER)
        self.refused(session.cancel, -1, 0)
        self.assertFalse(session.cancel(7, 0))
        with self.assertRaises(ferry.FerryError) as caught:
            session.receive(b"\x80\x00", 0)
        self.assertEqual(caught.exception.code, -19)
        self.assertIn("length", str(caught.exception))

    def test_large_messages(self):
        limits = ferry.Limits(message=1 << 20, outbound=1 << 20, inbound=4 << 20)
        a, b = ferry.Session.length_prefix(limits), ferry.Session.length_prefix(limits)
        a.link_opened(0)
        b.link_opened(0)
        message = os.urandom(1 << 20)
        a.enqueue(message, 0)
        while chunk := a.next_chunk(50_000, 0):
            b.receive(chunk, 0)
        self.assertEqual(b.next_event(0), ferry.Received(message))


class Wire:
    """Two ends in memory; `cut` ends both."""

    def __init__(self, *sessions, capacity=20, progress=None):
        self.is_cut = False
        self.ends = []
        for side, session in enumerate(sessions):
            async def write(chunk, other=1 - side):
                if self.is_cut:
                    raise OSError("cut")
                assert len(chunk) <= capacity
                await asyncio.sleep(0)
                if not self.is_cut:
                    self.ends[other].received(chunk)

            self.ends.append(ferry.Channel(session, write, lambda: capacity, progress))

    def cut(self):
        self.is_cut = True
        for end in self.ends:
            end.close()


class Channels(unittest.IsolatedAsyncioTestCase):
    async def test_both_ways(self):
        for make in (ferry.Session.end_of_message, ferry.Session.length_prefix, ferry.Session.sequenced):
            with self.subTest(make=make.__name__):
                steps = []
                a, b = Wire(make(), make(), progress=lambda number, count: steps.append(count)).ends
                messages = [os.urandom(size) for size in (0, 1, 20, 300, 4000)]

                async def read(end):
                    return [await end.receive() for _ in messages]

                async def send(end):
                    for message in messages:
                        await end.send(message)

                _, _, one, two = await asyncio.gather(send(a), send(b), read(a), read(b))
                self.assertEqual(one, messages)
                self.assertEqual(two, messages)
                self.assertIn(4000, steps)
                a.close()
                b.close()

    async def test_end(self):
        wire = Wire(ferry.Session.length_prefix(), ferry.Session.length_prefix())
        a, b = wire.ends
        await a.send(b"last")
        wire.cut()
        self.assertEqual(await b.receive(), b"last")
        for call in (b.receive(), b.send(b"x"), a.receive()):
            with self.assertRaises(ferry.FerryError) as caught:
                await call
            self.assertEqual(caught.exception.code, ferry.ERROR_ORDER)

    async def test_malformed(self):
        _, b = Wire(ferry.Session.length_prefix(), ferry.Session.length_prefix()).ends
        b.received(b"\x02ok\x80\x00")
        self.assertEqual(await b.receive(), b"ok")
        with self.assertRaises(ferry.FerryError) as caught:
            await b.receive()
        self.assertEqual(caught.exception.code, -19)

    async def test_cancelled_before_it_left(self):
        a, b = Wire(ferry.Session.length_prefix(), ferry.Session.length_prefix()).ends
        first = asyncio.ensure_future(a.send(bytes(100)))
        second = asyncio.ensure_future(a.send(b"never"))
        await asyncio.sleep(0)
        second.cancel()
        await first
        await a.send(b"then")
        self.assertEqual([await b.receive(), await b.receive()], [bytes(100), b"then"])
        self.assertTrue(second.cancelled())

    async def test_unread_messages_are_bounded(self):
        limits = ferry.Limits(inbound=500)
        a, b = Wire(ferry.Session.length_prefix(), ferry.Session.length_prefix(limits)).ends
        for _ in range(40):
            await a.send(bytes(60))
        received = 0
        with self.assertRaises(ferry.FerryError) as caught:
            while True:
                received += len(await b.receive())
        self.assertEqual(caught.exception.code, ferry.ERROR_FULL)
        self.assertTrue(0 < received < 2400)


if __name__ == "__main__":
    unittest.main()
