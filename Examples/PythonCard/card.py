"""Exchanges business cards with `business-card serve --save FILE`, over bleak: any adapter of Linux, macOS or Windows.

    python3 -m venv venv && venv/bin/pip install bleak
    scripts/firmware python
    PYTHONPATH=.build-firmware/python venv/bin/python Examples/PythonCard/card.py --first-name Grace --last-name Hopper
"""

import argparse
import asyncio
import json

import ferry

SERVICE = "e07f0ae8-00bb-47f5-94f4-4a7174ea3032"
CHARACTERISTIC = "9d534e8b-2153-4f6d-b2b0-8c68665a7274"
FRAMINGS = {
    "eom": lambda: ferry.Session.end_of_message(chunk=20),
    "length": ferry.Session.length_prefix,
    "sequenced": lambda: ferry.Session.sequenced(codec="json"),
}


async def exchange(channel: ferry.Channel, card: dict[str, str], timeout: float = 30) -> dict[str, str]:
    """Receives the peer's card, and sends it this one."""
    async with asyncio.timeout(timeout):
        theirs = json.loads(await channel.receive())
        await channel.send(json.dumps(card).encode())
    return theirs


async def main(options: argparse.Namespace) -> None:
    from bleak import BleakClient, BleakScanner

    # Linux with several adapters; without it bleak takes any of them.
    bluez = {"adapter": options.adapter} if options.adapter else {}
    device = await BleakScanner.find_device_by_filter(
        lambda device, heard: SERVICE in heard.service_uuids, timeout=options.timeout, service_uuids=[SERVICE], bluez=bluez)
    if not device:
        raise SystemExit(f"No device offered cards within {options.timeout} s. Start business-card serve nearby.")
    channel: ferry.Channel | None = None

    def disconnected(_: BleakClient) -> None:
        if channel:
            channel.close()

    async with BleakClient(device, disconnected, timeout=options.timeout, bluez=bluez) as client:
        characteristic = client.services.get_characteristic(CHARACTERISTIC)
        # Disconnecting loses what was only handed to the radio; the sequenced framing has acknowledgements of its own.
        answers = "write" in characteristic.properties and options.framing != "sequenced"
        channel = ferry.Channel(
            FRAMINGS[options.framing](),
            # Its awaiting is the readiness: bleak returns when the system takes the next value.
            lambda chunk: client.write_gatt_char(characteristic, chunk, response=answers),
            lambda: 20 if answers else characteristic.max_write_without_response_size,
            lambda number, count: print(f"sent {count} bytes"),
        )
        await client.start_notify(characteristic, lambda _, value: channel.received(bytes(value)))
        card = {"firstName": options.first_name, "lastName": options.last_name, "contact": options.contact}
        theirs = await exchange(channel, {"organization": "", "location": ""} | card, options.timeout)
        for field, text in theirs.items():
            print(f"{field:16}{text}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first-name", default="Grace")
    parser.add_argument("--last-name", default="Hopper")
    parser.add_argument("--contact", default="")
    parser.add_argument("--framing", choices=FRAMINGS, default="eom")
    parser.add_argument("--adapter", help="hci0, for instance; Linux only")
    parser.add_argument("--timeout", type=float, default=30)
    asyncio.run(main(parser.parse_args()))
