#!/usr/bin/env python3
"""A fleet for as long as it takes: fleet.py --programs FOLDER --work FOLDER [--minutes 30] [--gateways 4] [--peers 100] [--seed 1]

Three nats-servers in a cluster; gateways and peers as processes, each with a controller of virtual-controllers' own, in a hall in which the
peers walk. Servers and gateways are killed, stopped and started again. In the end each record that a peer was given must be
in a consumer's table once and in order of its peer, and no peer was connected to two gateways of which neither was stopped.
Ends with 0 when all this holds. Needs nats-py.
"""

import argparse
import json
import pathlib
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HALL = 120.0  # metres; a gateway is heard for 63
LEASE = 6


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Air:
    """virtual-controllers, what it says, and when."""

    def __init__(self, programs: pathlib.Path, work: pathlib.Path, count: int):
        self.folder = work / "air"
        self.folder.mkdir()
        self.log = (work / "air.log").open("w")
        self.process = subprocess.Popen(
            [programs / "virtual-controllers", "--count", str(count), f"unix:{self.folder}/", "--control", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.changes: list[tuple[float, str, int, int]] = []
        self.complaints: list[str] = []
        self.serving = threading.Semaphore(0)
        threading.Thread(target=self.read, daemon=True).start()
        for _ in range(count):
            if not self.serving.acquire(timeout=60):
                sys.exit("virtual-controllers do not serve; see air.log.")

    def read(self) -> None:
        for line in self.process.stdout:
            now = time.monotonic()
            if line != "ok\n":
                self.log.write(f"{now:.3f} {line}")
                self.log.flush()
            if " serves " in line:
                self.serving.release()
            elif found := re.match(r"(\d+) is connected to (\d+)\.", line):
                self.changes.append((now, "up", int(found[1]), int(found[2])))
            elif found := re.match(r"(\d+) and (\d+) are (lost|disconnected|ended)", line):
                self.changes.append((now, "down", int(found[1]), int(found[2])))
            elif line.startswith(("!!", "error")):
                self.complaints.append(line.strip())

    def say(self, line: str) -> None:
        self.process.stdin.write(line + "\n")


class Fleet:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.random = random.Random(options.seed)
        self.work = options.work.resolve()
        self.ferry = options.programs.resolve() / "ferry"
        self.processes: dict[str, subprocess.Popen] = {}
        self.begin = time.monotonic()
        # When a gateway was stopped or away: name, from, to.
        self.stopped: list[tuple[int, float, float]] = []
        self.ports = free_ports(6)
        self.addresses = [f"nats://127.0.0.1:{port}" for port in self.ports[:3]]
        self.given = [0] * options.peers

    def note(self, line: str) -> None:
        print(f"{time.monotonic() - self.begin:7.1f} s  {line}", flush=True)

    def start(self, name: str, command: list, **how) -> subprocess.Popen:
        log = (self.work / f"{name}.log").open("a")
        how = {"stdin": subprocess.DEVNULL, **how}
        self.processes[name] = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, **how)
        return self.processes[name]

    def server(self, number: int) -> None:
        routes = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in self.ports[3:])
        configuration = self.work / f"server-{number}.conf"
        configuration.write_text(f"""
server_name: s{number}
listen: "127.0.0.1:{self.ports[number]}"
jetstream {{ store_dir: "{self.work}/server-{number}", max_file_store: 2G }}
cluster {{ name: fleet, listen: "127.0.0.1:{self.ports[3 + number]}", routes: [{routes}] }}
""")
        self.start(f"server-{number}", ["nats-server", "-c", configuration])

    def gateway(self, number: int) -> None:
        name = f"gateway-{number}"
        (self.work / f"{name}.json").write_text(json.dumps({
            "name": name, "store": f"{self.work}/{name}.ferry", "nats": self.addresses, "fleet": "leases",
            "leaseSeconds": LEASE, "transport": f"hci:unix:{self.work}/air/{number}", "streamReplicas": 3,
            "streamBytes": 1 << 28, "capacity": 64, "statusSeconds": 5}))
        self.start(name, [self.ferry, "gateway", "--config", self.work / f"{name}.json"])

    def peer(self, number: int) -> None:
        controller = self.options.gateways + number
        self.start(
            f"peer-{number}",
            [self.ferry, "send", "--store", self.work / f"peer-{number}.ferry", "--transport",
             f"hci:unix:{self.work}/air/{controller}", "--listen", "--fleet", "--timeout", "3600", "--lines", "-"],
            stdin=subprocess.PIPE, text=True, bufsize=1)

    def run(self) -> int:
        options = self.options
        gateways, peers = options.gateways, options.peers
        air = Air(options.programs.resolve(), self.work, gateways + peers)
        self.processes["air"] = air.process
        for number in range(3):
            self.server(number)
        # In a row through the hall, so that most places hear two gateways.
        for number in range(gateways):
            air.say(f"place {number} {HALL * (number + 0.5) / gateways:.1f} {HALL / 4 if number % 2 else HALL / 2:.1f}")
        places = [[self.random.uniform(0, HALL), self.random.uniform(0, HALL / 2)] for _ in range(peers)]
        for number, (x, y) in enumerate(places):
            air.say(f"place {gateways + number} {x:.1f} {y:.1f}")
        air.say(f"loss * * {options.loss}")
        time.sleep(5)
        for number in range(gateways):
            self.gateway(number)
        for number in range(peers):
            self.peer(number)
        self.start("consumer", [
            options.python, ROOT / "Examples/Gateway/consumer.py", self.addresses[0], "ferry", self.work / "table"])
        end = self.begin + options.minutes * 60
        trouble = self.begin + 20
        undo: list[tuple[float, object, str]] = []
        while time.monotonic() < end or undo:
            time.sleep(1)
            now = time.monotonic()
            self.walk(air, places)
            self.feed()
            self.restart_what_ended(undo)
            for due in [each for each in undo if each[0] <= now]:
                undo.remove(due)
                self.note(due[2])
                due[1]()
            if now >= trouble and now < end and not undo:
                undo.append(self.make_trouble(now))
                trouble = now + self.random.uniform(15, 30)
        self.note("no more trouble; the peers come to their end")
        for number in range(peers):
            self.processes[f"peer-{number}"].stdin.close()
        patience = time.monotonic() + 120 + options.minutes * 20
        waiting = set(range(peers))
        while time.monotonic() < patience:
            time.sleep(1)
            self.walk(air, places)
            self.restart_what_ended([])
            waiting = {number for number in waiting if self.processes[f"peer-{number}"].poll() is None}
            if not waiting and self.records() >= sum(self.given):
                break
        return self.judge(air, waiting)

    def walk(self, air: Air, places: list) -> None:
        for number, place in enumerate(places):
            place[0] = min(HALL, max(0, place[0] + self.random.uniform(-3, 3)))
            place[1] = min(HALL / 2, max(0, place[1] + self.random.uniform(-3, 3)))
            air.say(f"place {self.options.gateways + number} {place[0]:.1f} {place[1]:.1f}")
        # One in a hundred is carried through the hall.
        if self.random.random() < len(places) / 100:
            places[self.random.randrange(len(places))][0] = self.random.uniform(0, HALL)

    def feed(self) -> None:
        for number in range(self.options.peers):
            process = self.processes[f"peer-{number}"]
            if process.poll() is None and self.random.random() < 0.5:
                try:
                    process.stdin.write(f"{number} {self.given[number] + 1}\n")
                    self.given[number] += 1
                except BrokenPipeError:
                    pass

    def restart_what_ended(self, undo: list) -> None:
        """Systemd would."""
        if undo:
            return
        for number in range(self.options.gateways):
            process = self.processes[f"gateway-{number}"]
            if process.poll() is not None:
                self.note(f"gateway-{number} ended by itself with {process.returncode}; it is started again")
                self.gateway(number)
        if self.processes["consumer"].poll() is not None:
            self.start("consumer", [
                self.options.python, ROOT / "Examples/Gateway/consumer.py", self.addresses[0], "ferry",
                self.work / "table"])

    def make_trouble(self, now: float) -> tuple:
        kind = self.random.choice(["kill server", "stop server", "kill gateway", "stop gateway"])
        how, what = kind.split()
        count = 3 if what == "server" else self.options.gateways
        number = self.random.randrange(count)
        name = f"{what}-{number}"
        lasts = self.random.uniform(3, 3 * LEASE)
        process = self.processes[name]
        self.note(f"{name}: {how} for {lasts:.0f} s")
        process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)

        def mend() -> None:
            if how == "stop":
                process.send_signal(signal.SIGCONT)
                if what == "gateway":
                    self.stopped.append((number, now, time.monotonic()))
            else:
                process.wait()
                (self.server if what == "server" else self.gateway)(number)

        return now + lasts, mend, f"{name}: back"

    def records(self) -> int:
        try:
            return sqlite3.connect(self.work / "table", timeout=10).execute("SELECT count(*) FROM record").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    def judge(self, air: Air, waiting: set) -> int:
        faults = []
        if waiting:
            faults.append(f"peers {sorted(waiting)} still wait for somebody to take their records")
        for number in range(self.options.peers):
            code = self.processes[f"peer-{number}"].poll()
            if code not in (None, 0):
                faults.append(f"peer-{number} ended with {code}; see its log")
        table = sqlite3.connect(self.work / "table", timeout=10)
        senders: dict[str, list] = {}
        for name, data in table.execute("SELECT name, bytes FROM record"):
            sender, _, _, sequence = name.split("/")
            senders.setdefault(sender, []).append((int(sequence), data.decode()))
        found: dict[int, list] = {}
        for rows in senders.values():
            values = [text.split() for _, text in sorted(rows)]
            found.setdefault(int(values[0][0]), []).extend(int(value[1]) for value in values)
        for number in range(self.options.peers):
            if found.get(number, []) != list(range(1, self.given[number] + 1)):
                have = found.get(number, [])
                missing = sorted(set(range(1, self.given[number] + 1)) - set(have))
                faults.append(
                    f"peer {number}: {len(have)} records of {self.given[number]}, missing {missing[:10]}, "
                    f"{len(have) - len(set(have))} twice, in order: {have == sorted(have)}")
        refused = table.execute("SELECT count(*) FROM refused").fetchone()[0]
        doubles = self.doubles(air)
        faults += doubles
        faults += air.complaints
        ups = sum(1 for change in air.changes if change[1] == "up")
        self.note(
            f"{sum(self.given)} records of {self.options.peers} peers, {self.records()} in the table; {ups} connections, "
            f"{refused} late claims refused")
        for fault in faults:
            print(f"!! {fault}")
        return 1 if faults else 0

    def doubles(self, air: Air) -> list[str]:
        """Peers that were connected to two gateways at once, of which none was stopped or just woken up."""
        holders: dict[int, dict[int, float]] = {}
        faults = []
        for when, what, one, other in air.changes:
            gateway, peer = min(one, other), max(one, other)
            if what == "down":
                holders.get(peer, {}).pop(gateway, None)
                continue
            for holder in holders.get(peer, {}):
                # Who wakes up, or has died, has its controller's connections a moment longer than its lease.
                if not any(number == holder and begin <= when <= finish + 2 for number, begin, finish in self.stopped):
                    faults.append(
                        f"peer-{peer - self.options.gateways} was connected to gateway-{holder} and gateway-{gateway} at "
                        f"{when:.3f} of the air's log")
            holders.setdefault(peer, {})[gateway] = when
        return faults

    def end(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--gateways", type=int, default=4)
    parser.add_argument("--peers", type=int, default=100)
    parser.add_argument("--loss", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    fleet = Fleet(options)
    try:
        return fleet.run()
    finally:
        fleet.end()


if __name__ == "__main__":
    sys.exit(main())
