#!/usr/bin/env python3
"""Strangers at a gateway, over a Unix socket and over TCP: they greet as fast as they can under new names, or say nothing, or half of
a greeting, while an honest `ferry send` brings a record again and again. Each must get through within some seconds, and the gateway's
memory, files and descriptors must stay as they are. `scripts/check strangers` runs it. Ends with 1 when one of these does not hold."""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("ferry", type=Path, help="the program")
options.add_argument("--strangers", type=int, default=100_000, help="connections of each kind")
options.add_argument("--seconds", type=float, default=1e9, help="after which a kind ends, however few have come")
options.add_argument("--within", type=float, default=2, help="the seconds that an honest sender may take, with its start")
options = options.parse_args()

# The first message of a store, as Records.md has it: a greeting with the store's name and its opening, which strangers draw at random.
STORE, NONCE = slice(4, 20), slice(21, 29)
PROCESSES = 2
KEPT = 50
work = Path(tempfile.mkdtemp(prefix="ferry-strangers-"))
failures: list[str] = []


def address(kind: str) -> str:
    return f"unix:{work}/{kind}" if kind == "unix" else f"tcp:127.0.0.1:{port}"


with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]


def connect(kind: str) -> socket.socket:
    if kind == "unix":
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link.connect(f"{work}/unix")
    else:
        link = socket.create_connection(("127.0.0.1", port))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def framed(kind: str, message: bytes) -> bytes:
    """A chunk: a packet of a Unix socket, and behind its length over TCP (FerrySocket)."""
    return message if kind == "unix" else len(message).to_bytes(2, "big") + message


def send(kind: str, store: str, line: str, seconds: float) -> subprocess.CompletedProcess:
    return subprocess.run(
        [options.ferry, "send", "--store", work / store, "--lines", "--transport", address(kind), "--timeout", str(seconds), "-"],
        input=line + "\n", text=True, capture_output=True)


def greeting() -> bytes:
    """What `ferry send --store` says first, taken from one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{work}/unix")
        listener.listen()
        listener.settimeout(60)
        sender = subprocess.Popen(
            [options.ferry, "send", "--store", work / "sample.ferry", "--lines", "--transport", address("unix"), "--timeout", "60", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        sender.stdin.write("sample\n")
        sender.stdin.close()
        link, _ = listener.accept()
        with link:
            message = link.recv(4096)
        sender.kill()
        sender.wait()
    os.remove(f"{work}/unix")
    if len(message) < 29 or message[0] != len(message) - 1:
        sys.exit(f"strangers: a greeting of another form than this knows: {message.hex()}")
    return message


def flood(kind: str, mode: str, message: bytes) -> None:
    """One process of strangers. A quarter of them leave at once, and the others stay until fifty more have come."""
    kept, end, came = [], time.monotonic() + options.seconds, 0
    for number in range(options.strangers // PROCESSES):
        if time.monotonic() > end:
            break
        try:
            link = connect(kind)
            if mode == "greet" or mode == "silent" and number % 2:
                said = bytearray(message)
                said[STORE], said[NONCE] = os.urandom(16), os.urandom(8)
                bytes_ = framed(kind, bytes(said))
                link.send(bytes_ if mode == "greet" else bytes_[:10])
        except OSError:
            # The gateway's queue was full for a moment, or it has closed the link already.
            continue
        came += 1
        if number % 4:
            kept.append(link)
        else:
            link.close()
        if len(kept) > KEPT:
            kept.pop(0).close()
    (work / f"came-{kind}-{mode}-{os.getpid()}").write_text(str(came))


class Size:
    def __init__(self, gateway: subprocess.Popen, kind: str) -> None:
        status = Path(f"/proc/{gateway.pid}/status").read_text()
        self.memory = int(status.split("VmRSS:")[1].split()[0]) << 10
        self.files = sum(file.stat().st_size for file in work.glob(f"{kind}.store*"))
        self.descriptors = len(os.listdir(f"/proc/{gateway.pid}/fd"))

    def __str__(self) -> str:
        return f"{self.memory / 1e6:.1f} MB, {self.files / 1e6:.2f} MB of files, {self.descriptors} descriptors"


def judge(what: str, holds: bool) -> None:
    if not holds:
        failures.append(what)
        print(f"strangers: {what}", flush=True)


def trouble(kind: str, mode: str, message: bytes, gateway: subprocess.Popen) -> None:
    began = time.monotonic()
    strangers = []
    for _ in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            try:
                flood(kind, mode, message)
            finally:
                # The cleanup at the end is the parent's.
                os._exit(1)
        strangers.append(pid)
    took: list[float] = []
    sizes: list[Size] = []
    while strangers or len(took) < 3:
        strangers = [pid for pid in strangers if os.waitpid(pid, os.WNOHANG)[0] == 0]
        start = time.monotonic()
        done = send(kind, f"honest-{kind}.ferry", f"{mode} {len(took)}", 60)
        took.append(time.monotonic() - start)
        judge(f"{kind}, {mode}: the honest sender ended with {done.returncode}: {done.stderr[-300:]}", done.returncode == 0)
        sizes.append(Size(gateway, kind))
    came = sum(int(file.read_text()) for file in work.glob(f"came-{kind}-{mode}-*"))
    seconds = time.monotonic() - began
    # Its pools and caches have what they need after a quarter of the time.
    early, late = sizes[len(sizes) // 4], sizes[-1]
    took.sort()
    print(f"strangers: {kind}, {mode}: {came} in {seconds:.1f} s; an honest sender took {took[len(took) // 2]:.2f} s, at most {took[-1]:.2f}; "
          f"the gateway had {early} and then {late}", flush=True)
    judge(f"{kind}, {mode}: an honest sender took {took[-1]:.2f} s, more than {options.within:g}", took[-1] <= options.within)
    judge(f"{kind}, {mode}: only {came} strangers came", came > options.strangers / 2 or seconds >= options.seconds)
    judge(f"{kind}, {mode}: memory grew from {early} to {late}", late.memory - early.memory < 16 << 20)
    # The store's log grows to 4 MB before it begins again (sqlite.org/wal.html).
    judge(f"{kind}, {mode}: files grew from {early} to {late}", late.files - early.files < (4 << 20) + 2048 * len(took))
    judge(f"{kind}, {mode}: descriptors grew from {early} to {late}", late.descriptors < early.descriptors + 100)


def run(kind: str, message: bytes) -> None:
    settings = {"name": "g", "store": f"{work}/{kind}.store", "transport": address(kind), "nats": {"servers": ["nats://127.0.0.1:9"]},
                "trust": {"acceptsStrangers": True}}
    (work / f"{kind}.json").write_text(json.dumps(settings))
    # Its server is away: records stay on its disk.
    with open(work / f"{kind}.log", "wb") as log:
        gateway = subprocess.Popen([options.ferry, "gateway", "--config", work / f"{kind}.json"], stdout=log, stderr=log)
    try:
        first = send(kind, f"honest-{kind}.ferry", "first", 60)
        judge(f"{kind}: the first sender ended with {first.returncode}: {first.stderr[-300:]}", first.returncode == 0)
        for mode in ("greet", "silent"):
            trouble(kind, mode, message, gateway)
        judge(f"{kind}: the gateway ended", gateway.poll() is None)
    finally:
        gateway.send_signal(signal.SIGINT)
        gateway.wait()
    known = subprocess.run([options.ferry, "gateway", "peers", work / f"{kind}.store"], text=True, capture_output=True)
    judge(f"{kind}: the store knows more than the honest peer: {known.stdout[:300]}", len(known.stdout.splitlines()) <= 2)


try:
    greeting_ = greeting()
    for kind_ in ("unix", "tcp"):
        run(kind_, greeting_)
finally:
    if failures:
        print(f"strangers: the logs are in {work}")
    else:
        shutil.rmtree(work)
sys.exit(1 if failures else 0)
