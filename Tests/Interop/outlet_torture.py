#!/usr/bin/env python3
"""Peers, a gateway to an outlet, and a mosquitto or an HTTP server in trouble: killed, halted, slow, full. What takes the records must
have each at least once, those of a peer's stream in their order by first arrival, and doubles under the same key with the same bytes.
`scripts/check outlets` and `http` run it. Ends with 1 when one of these does not hold, and leaves the logs then."""

import argparse
import collections
import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("ferry", type=Path, help="the program")
options.add_argument("--outlet", choices=["mqtt", "http"], default="mqtt")
options.add_argument("--seconds", type=float, default=60, help="of trouble")
options.add_argument("--peers", type=int, default=4)
options.add_argument("--rate", type=float, default=50, help="records a second of each peer")
options.add_argument("--seed", type=int, default=1)
options = options.parse_args()
options.ferry = options.ferry.resolve()

# For anything that must happen, however busy the machine.
PATIENCE = 300
work = Path(tempfile.mkdtemp(prefix="ferry-outlets-"))
random = random.Random(options.seed)
started: list[subprocess.Popen] = []
troubles: collections.Counter = collections.Counter()


def start(name: str, words: list, **more) -> subprocess.Popen:
    log = open(work / f"{name}.log", "ab")
    process = subprocess.Popen([str(word) for word in words], **{"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, **more})
    started.append(process)
    return process


def wait_for(what: str, holds, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(0.1)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Mosquitto:
    """A broker, and a subscriber that survives it."""

    name = "mosquitto"

    def __init__(self) -> None:
        self.port = free_port()
        self.outlet = {"mqtt": f"mqtt://127.0.0.1:{self.port}"}
        self.program = shutil.which(self.name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") or sys.exit(
            "There is no mosquitto; run scripts/setup test.")
        (work / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nuser root\npersistence true\npersistence_location {work}/\n"
            "autosave_on_changes true\nautosave_interval 1\nmax_queued_messages 0\nmax_inflight_messages 20\n"
            f"log_dest file {work}/mosquitto.log\nlog_type all\nplugin {work}/full.so\nplugin_opt_mark {work}/is-full\n")
        compiler = shutil.which("clang") or shutil.which("cc") or sys.exit("There is no clang; it comes with Swift.")
        subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", work / "full.so",
                        Path(__file__).with_name("mosquitto_full.c")], check=True)

    def start(self) -> subprocess.Popen:
        process = start("mosquitto-start", [self.program, "-c", work / "mosquitto.conf"])
        wait_for("mosquitto's port", lambda: listens(self.port))
        return process

    def subscribe(self) -> None:
        start("subscriber", ["mosquitto_sub", "-V", "5", "-h", "127.0.0.1", "-p", self.port, "-i", "table", "-c", "-x", "36000", "-q", "1",
                             "-k", "5", "-t", "ferry/records/#", "-F", "%t|%P|%p"], stdout=open(work / "heard", "wb"))

    def refusals(self) -> int:
        return (work / "mosquitto.log").read_bytes().count(b"due to out of memory")

    def arrival(self, line: str) -> tuple[str, str, str]:
        topic, properties, text = line.split("|", 2)
        key = next(word.removeprefix("Ferry-Record:") for word in properties.split() if word.startswith("Ferry-Record:"))
        return topic, key, text


class Server:
    """An HTTP server, which writes down what it takes."""

    name = "the server"

    def __init__(self) -> None:
        self.port = free_port()
        self.outlet = {"http": f"http://127.0.0.1:{self.port}/records"}
        (work / "heard").touch()

    def start(self) -> subprocess.Popen:
        process = start("server", [sys.executable, Path(__file__).with_name("http_sink.py"), "127.0.0.1", self.port, work])
        wait_for("the server's port", lambda: listens(self.port))
        return process

    def subscribe(self) -> None:
        pass

    def refusals(self) -> int:
        refusals = work / "refusals"
        return len(refusals.read_bytes()) if refusals.exists() else 0

    def arrival(self, line: str) -> tuple[str, str, str]:
        source, key, digits = line.split("|")
        return source, key, bytes.fromhex(digits).decode()


server = {"mqtt": Mosquitto, "http": Server}[options.outlet]()


def trouble(process: subprocess.Popen) -> subprocess.Popen:
    how = random.choice(["killed", "halted", "slow", "full"])
    troubles[how] += 1
    if how == "killed":
        process.kill()
        process.wait()
        time.sleep(random.uniform(0, 2))
        return server.start()
    if how == "full":
        before = server.refusals()
        (work / "is-full").touch()
        wait_for("a record that found no room", lambda: server.refusals() > before)
        time.sleep(random.uniform(0, 4))
        (work / "is-full").unlink()
        return process
    if how == "halted":
        process.send_signal(signal.SIGSTOP)
        time.sleep(random.uniform(0.5, 5))
    else:
        end = time.monotonic() + random.uniform(1, 4)
        while time.monotonic() < end:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.09)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
    process.send_signal(signal.SIGCONT)
    return process


sent = [0] * options.peers
is_over = threading.Event()


def write(number: int, peer: subprocess.Popen) -> None:
    while not is_over.wait(1 / options.rate):
        sent[number] += 1
        peer.stdin.write(f"{number} {sent[number]}\n".encode())
        peer.stdin.flush()


def heard() -> list[tuple[str, str, str]]:
    """Address, key and text of what has arrived, in the server's order."""
    return [server.arrival(line) for line in (work / "heard").read_text().split("\n")[:-1]]


def wait_for_all() -> None:
    """Until each record has arrived, as long as more do: what waits after much trouble is much."""
    keys: set[str] = set()
    line = ""
    with open(work / "heard") as file:
        while len(keys) < sum(sent):
            before = len(keys)
            end = time.monotonic() + PATIENCE
            while len(keys) == before:
                if time.monotonic() > end:
                    raise TimeoutError(f"no other record has arrived for {PATIENCE} s")
                part = file.readline()
                line += part
                if line.endswith("\n"):
                    keys.add(server.arrival(line[:-1])[1])
                    line = ""
                elif not part:
                    time.sleep(0.1)


def faults(arrivals: list[tuple[str, str, str]]) -> list[str]:
    texts: dict[str, str] = {}
    lanes: dict[str, list[str]] = collections.defaultdict(list)
    found = []
    for topic, key, text in arrivals:
        if key in texts:
            if texts[key] != text:
                found.append(f"{key} is {texts[key]!r} and {text!r}")
            continue
        texts[key] = text
        lanes[topic].append(text)
    missing = {f"{peer} {number}" for peer in range(options.peers) for number in range(1, sent[peer] + 1)} - set(texts.values())
    if missing:
        found.append(f"{len(missing)} records are missing, such as {sorted(missing)[0]!r}")
    for topic, all_texts in lanes.items():
        numbers = [int(text.split()[1]) for text in all_texts]
        for before, after in zip(numbers, numbers[1:]):
            if after <= before:
                found.append(f"{topic}: {after} came after {before}")
                break
    return found


def run() -> list[str]:
    process = server.start()
    server.subscribe()
    (work / "gateway.json").write_text(json.dumps({
        "name": "g", "store": f"{work}/gateway.ferry", "transport": f"unix:{work}/socket", "statusSeconds": 1, "keepSeconds": 8,
        "answerSeconds": 3, "outlet": server.outlet}))
    gateway = start("gateway", [options.ferry, "gateway", "--config", work / "gateway.json"])
    wait_for("the gateway's socket", (work / "socket").exists)
    peers = [start(f"peer-{number}", [options.ferry, "send", "--store", work / f"peer-{number}.ferry", "--transport", f"unix:{work}/socket",
                                      "--timeout", "3600", "--lines", "-"], stdin=subprocess.PIPE) for number in range(options.peers)]
    writers = [threading.Thread(target=write, args=(number, peer), daemon=True) for number, peer in enumerate(peers)]
    for writer in writers:
        writer.start()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(0.5, 4))
        process = trouble(process)
        if gateway.poll() is not None:
            return [f"the gateway ended by itself with {gateway.returncode}"]
    is_over.set()
    for writer in writers:
        writer.join()
    for peer in peers:
        peer.stdin.close()
    wait_for("the peers' end", lambda: all(peer.poll() is not None for peer in peers))
    try:
        wait_for_all()
    except TimeoutError as error:
        return [str(error), *faults(heard())]
    wait_for("an empty store", lambda: b" 0 in the store" in (work / "gateway.log").read_bytes().split(b"\n")[-2])
    return faults(heard())


try:
    found = run()
finally:
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
arrivals = heard()
said = ", ".join(f"{how} {count} times" for how, count in sorted(troubles.items()))
print(f"{sum(sent)} records of {options.peers} peers, {len(arrivals)} arrivals ({len(arrivals) - len({key for _, key, _ in arrivals})} doubles); "
      f"{server.name} was {said}")
if found:
    print("\n".join(found), f"The logs are in {work}.", sep="\n", file=sys.stderr)
    sys.exit(1)
shutil.rmtree(work)
