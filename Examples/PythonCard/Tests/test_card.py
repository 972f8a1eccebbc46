"""The example with a bleak that ends in memory: `scripts/far-end python`. `scripts/far-end bluez` has the real one."""

import asyncio
import contextlib
import io
import json
import os
import pathlib
import sys
import types
import unittest

sys.path[:0] = [os.environ["FERRY_PACKAGE"], str(pathlib.Path(__file__).parents[1])]
import card
import ferry

ADA = {"firstName": "Ada", "lastName": "Lovelace", "organization": "", "location": "London", "contact": ""}


# What business-card uses.
FRAMINGS = card.FRAMINGS | {"sequenced": lambda: ferry.Session.sequenced(codec="json")}


class Characteristic:
    properties = ["write-without-response", "write", "notify"]
    max_write_without_response_size = 182


class Peripheral:
    """What the example sees as bleak's client. Its other end sends a card, and keeps the one that arrives."""

    framing = "eom"
    is_silent = False

    def __init__(self, device, disconnected_callback, timeout, bluez):
        self.services = self
        self.disconnected = disconnected_callback
        self.theirs = None
        self.writes = []
        Peripheral.last = self

    def get_characteristic(self, identifier):
        assert identifier == card.CHARACTERISTIC
        return Characteristic()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.disconnected(self)

    async def write_gatt_char(self, characteristic, chunk, response):
        await asyncio.sleep(0)
        self.writes.append((len(chunk), response))
        self.channel.received(chunk)

    async def start_notify(self, characteristic, callback):
        async def notify(chunk):
            await asyncio.sleep(0)
            callback(characteristic, bytearray(chunk))

        self.channel = ferry.Channel(FRAMINGS[self.framing](), notify, lambda: 20)
        if not self.is_silent:
            self.task = asyncio.ensure_future(self.serve())

    async def serve(self):
        await self.channel.send(json.dumps(ADA).encode())
        self.theirs = json.loads(await self.channel.receive())


class Scanner:
    @staticmethod
    async def find_device_by_filter(accepts, timeout, service_uuids, bluez):
        assert service_uuids == [card.SERVICE]
        return object() if accepts(None, types.SimpleNamespace(service_uuids=[card.SERVICE])) else None


def options(framing="eom", timeout=10):
    return types.SimpleNamespace(
        first_name="Grace", last_name="Hopper", contact="", framing=framing, timeout=timeout, adapter=None)


class Cards(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        sys.modules["bleak"] = types.SimpleNamespace(BleakClient=Peripheral, BleakScanner=Scanner)
        Peripheral.is_silent = False

    async def test_cards_cross(self):
        for framing in card.FRAMINGS:
            with self.subTest(framing=framing):
                Peripheral.framing = framing
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    await card.main(options(framing))
                peripheral = Peripheral.last
                await peripheral.task
                self.assertEqual(peripheral.theirs["lastName"], "Hopper")
                self.assertIn("Lovelace", said.getvalue())
                limit = 182 if framing == "sequenced" else 20
                self.assertLessEqual(max(count for count, _ in peripheral.writes), limit)
                self.assertEqual({response for _, response in peripheral.writes}, {framing != "sequenced"})
                peripheral.channel.close()

    async def test_silent_peer_has_a_deadline(self):
        Peripheral.framing, Peripheral.is_silent = "eom", True
        with self.assertRaises(TimeoutError):
            await card.main(options(timeout=0.1))
        Peripheral.last.channel.close()


if __name__ == "__main__":
    unittest.main()
