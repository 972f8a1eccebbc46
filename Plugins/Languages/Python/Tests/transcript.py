"""What transcript.js does in WebAssembly (Plugins/Languages/JavaScript/Tests), in the C library: both print the same.

transcript.py PACKAGE schedules COUNT      or      corpus FOLDER
"""

import hashlib
import os
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import ferry

LIMITS = ferry.Limits(900, 2000, 6, 4096, 5.0)
SIZES = [20, 21, 23, 64, 182, 244, 512, 40_000]


class Random:
    def __init__(self, seed):
        self.state = ((seed * 2654435761) + 1) % (1 << 32) or 1

    def below(self, bound):
        x = self.state
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        self.state = x
        return x % bound

    def bytes(self, count):
        return bytes(self.below(256) for _ in range(count))


def make(framing, identifier):
    match framing:
        case 0:
            return ferry.Session.end_of_message(LIMITS)
        case 1:
            return ferry.Session.length_prefix(LIMITS)
        case 2:
            return ferry.Session.length_prefix(LIMITS, "16-little")
        case _:
            return ferry.Session.sequenced(LIMITS, identifier, 8)


def answer(call, *arguments):
    try:
        result = call(*arguments)
    except ferry.FerryError as error:
        return f"error {error.code}"
    if result is None:
        return "-"
    return result.hex() if isinstance(result, bytes) else str(int(result))


def events(session, now):
    words = []
    while event := session.next_event(now):
        match event:
            case ferry.Received(message):
                words.append(f"received {message.hex()}")
            case ferry.Progress(number, count):
                words.append(f"progress {number} {count}")
            case ferry.Sent(number):
                words.append(f"sent {number}")
            case ferry.Failed(number, error):
                words.append(f"failed {number} {error.code}")
            case ferry.ReceiveFailed(error):
                words.append(f"dropped {error.code}")
    return ", ".join(words)


def schedule(seed, say):
    random, framing = Random(seed), seed % 4
    sessions, wires = [make(framing, 7), make(framing, 8)], [[], []]
    is_damaging = random.below(100) < 30
    now = 1000
    for session in sessions:
        if random.below(100) < 95:
            session.link_opened(now)
    for _ in range(120):
        side = random.below(2)
        session, choice = sessions[side], random.below(40)
        if choice < 6:
            if random.below(20) == 0:
                count = 800 + random.below(200)
            else:
                count = random.below(400 if random.below(3) == 0 else 30)
            say(f"enqueue {answer(session.enqueue, random.bytes(count), now)}")
        elif choice == 6:
            say(f"cancel {answer(session.cancel, random.below(8), now)}")
        elif choice == 7 and random.below(5) == 0:
            say(f"close {answer(session.link_closed, now)}")
        elif choice == 8:
            say(f"open {answer(session.link_opened, now)}")
        elif 9 <= choice < 12:
            now += random.below(6000 if random.below(10) == 0 else 200) * 1_000_000
            say(f"wake {answer(session.wake, now)}")
        elif 12 <= choice < 16:
            say(f"events {events(session, now)}")
        elif 16 <= choice < 28:
            size = random.below(20) if random.below(33) == 0 else 20 + random.below(60)
            chunk = answer(session.next_chunk, size, now)
            say(f"chunk {chunk}")
            if chunk != "-" and not chunk.startswith("error"):
                wires[1 - side].append(bytes.fromhex(chunk))
        elif wires[side]:
            chunk = wires[side].pop(0)
            if is_damaging and random.below(10) == 0:
                way = random.below(4)
                if way == 0:
                    continue
                if way == 1:
                    chunk = chunk[: random.below(len(chunk) + 1)]
                elif way == 2 and chunk:
                    place = random.below(len(chunk))
                    chunk = chunk[:place] + bytes([random.below(256)]) + chunk[place + 1 :]
                else:
                    wires[side].append(chunk)
            say(f"receive {answer(session.receive, chunk, now)}")
        say(f"deadline {answer(session.deadline)}")


def play(data, say):
    for framing in range(4):
        session = make(framing, 7)
        now, size, place = 0, 20, 0
        session.link_opened(now)
        while place < len(data):
            step = data[place]
            place += 1
            if step < 128:
                say(f"receive {answer(session.receive, data[place : place + step], now)}")
                place += step
            elif step < 160:
                say(f"enqueue {answer(session.enqueue, bytes([step]) * ((step - 128) * 37), now)}")
            elif step < 192:
                say(f"events {events(session, now)}")
            elif step < 208:
                at = answer(session.deadline)
                if at.isdigit():
                    now = max(now, int(at))
                say(f"wake {answer(session.wake, now)}")
            elif step < 224:
                say(f"cancel {answer(session.cancel, step - 208, now)}")
            elif step < 240:
                for _ in range(step - 224 + 1):
                    say(f"chunk {answer(session.next_chunk, size, now)}")
            elif step < 248:
                say(f"close {answer(session.link_closed, now)}")
                say(f"open {answer(session.link_opened, now)}")
            else:
                size = SIZES[step - 248]
            say(f"deadline {answer(session.deadline)}")
        say(f"events {events(session, now)}")


class Digest:
    def __init__(self):
        self.hash, self.count = hashlib.sha256(), 0

    def say(self, line):
        self.hash.update(f"{line}\n".encode())
        if os.environ.get("FERRY_SHOW") == str(self.count):
            print(line, file=sys.stderr)

    def tell(self, is_last=False):
        if is_last or self.count % 50 == 0:
            print(self.count, self.hash.hexdigest()[:16])
            self.hash = hashlib.sha256()


digest = Digest()
if sys.argv[2] == "schedules":
    while digest.count < int(sys.argv[3]):
        schedule(digest.count, digest.say)
        digest.count += 1
        digest.tell()
else:
    for file in sorted(pathlib.Path(sys.argv[3]).iterdir(), key=lambda file: file.name):
        play(file.read_bytes(), digest.say)
        digest.count += 1
        digest.tell()
digest.tell(True)
