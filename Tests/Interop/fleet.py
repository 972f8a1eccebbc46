#!/usr/bin/env python3
"""A fleet for as long as it takes: fleet.py --programs FOLDER --work FOLDER [--minutes 30] [--gateways 4] [--peers 100] [--seed 1]

Three nats-servers in a cluster; gateways and peers as processes, each with a controller of virtual-controllers' own, in a hall in
which the peers walk, and are carried now and then. Each server and each gateway has a network namespace and a small disk of its own.
Meanwhile servers and gateways are killed, stopped, cut off, slowed down, and their disks filled, and servers parted from one another:
by chance for so many minutes, or, with --once, each in its turn, until what it does has been seen.

In the end each record that a peer was given must be in a consumer's table once and in order of its peer, no peer may have been
connected to two gateways of which neither was stopped, no gateway may have ended by itself, and a claim that came too late must
have been refused. Ends with 0 when all this holds. Needs nats-py, root and iproute2.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from fleet_ground import Disk, Network, check, end_on_signals, remove_all_of, remove_leftovers, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVERS = 3
KINDS = {
    "server": ["kill", "stop", "cut", "part", "slow", "fill"],
    "gateway": ["fill", "kill", "cut", "stop", "slow"],
}
# With --once: what is done at the same time, a gateway's trouble and a server's. In this order each gateway's shows that the one
# before it is well again, for it has taken the peers.
ROUNDS = [
    ("fill", "kill"), ("kill", "cut"), ("cut", "stop"), ("stop", None), ("slow", "part"), (None, "slow"), (None, "fill")]


class Air:
    """virtual-controllers, what it says, and when."""

    def __init__(self, command: list, work: pathlib.Path, count: int):
        folder = work / "air"
        folder.mkdir()
        self.log = (work / "air.log").open("w")
        self.process = subprocess.Popen(
            [*command, "--count", str(count), f"unix:{folder}/", "--control", "-"],
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


class Trouble:
    """Something that is done to a server or a gateway, and undone."""

    def __init__(self, fleet: "Fleet", what: str, how: str):
        self.fleet, self.how, self.what = fleet, how, what
        self.number = fleet.victim(what)
        self.name = f"{what}-{self.number}"
        self.other = f"{what}-{(self.number + 1) % SERVERS}"
        self.begin = time.monotonic()
        # What is needed to see that it is noticed.
        self.owned = fleet.owned_by(self.name)
        self.records = fleet.records()
        self.last = fleet.last_row()
        self.log = fleet.length_of_log(self.name)
        fleet.made[f"{how} {what}"] = fleet.made.get(f"{how} {what}", 0) + 1
        fleet.note(f"{self.name}: {how}" + (f" from {self.other}" if how == "part" else ""))
        network, process = fleet.network, fleet.processes[self.name]
        if how in ("kill", "stop"):
            process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        elif how == "cut":
            network.cut(self.name)
        elif how == "part":
            network.part(self.name, self.other)
        elif how == "slow":
            network.slow(self.name)
        self.keep()

    def keep(self) -> None:
        """Called each second while it lasts: whoever deletes something makes room."""
        if self.how == "fill":
            self.fleet.disks[self.name].fill()

    def is_seen(self) -> bool:
        """Whether it has shown what it does: others have taken a gateway's peers; without a server records arrive."""
        if self.what == "gateway":
            if self.how == "slow":
                return time.monotonic() > self.begin + 2 * self.fleet.options.lease
            brought = self.owned & self.fleet.brought_by_others(self.name, self.last)
            if self.how == "stop":
                # Long enough to lose its leases. Its controller holds on to its connections: those peers wait for 60 s.
                return bool(brought) and time.monotonic() > self.begin + 2 * self.fleet.options.lease
            return brought == self.owned
        if self.how == "part":
            # Two that do not hear one another are elected in turns: meanwhile a consumer may be at the one that has no say.
            return not self.fleet.network.reaches(self.name, self.other, 4222)
        if self.how == "fill":
            # Not more: with one that cannot write, older ones elect leaders again and again, and store nothing meanwhile.
            said = self.fleet.log_since(self.name, self.log)
            return re.search("no space left|out of .* resources|NO quorum", said) is not None
        return self.fleet.records() >= self.records + 2 * self.fleet.options.peers

    def undo(self) -> None:
        fleet, network, process = self.fleet, self.fleet.network, self.fleet.processes[self.name]
        fleet.note(f"{self.name}: back after {time.monotonic() - self.begin:.0f} s")
        self.records = fleet.records()
        if self.how == "stop":
            process.send_signal(signal.SIGCONT)
            if self.what == "gateway":
                fleet.stopped.append((self.number, self.begin, time.monotonic()))
        elif self.how == "kill":
            process.wait()
            fleet.start(self.name)
        elif self.how == "cut":
            network.mend(self.name)
        elif self.how == "part":
            network.join(self.name, self.other)
        elif self.how == "slow":
            network.quicken(self.name)
        elif self.how == "fill":
            fleet.disks[self.name].empty()
            if self.what == "server":
                # It does not go on by itself when there is room again. Snapshots of it may be cut short: what it has is thrown away,
                # and comes from the other two.
                process.kill()
                process.wait()
                shutil.rmtree(fleet.work / self.name / "jetstream")
                fleet.start(self.name)

    def is_well(self) -> bool:
        """Whether what had the trouble is as before. A gateway shows that by taking peers again, in the next round."""
        if self.what == "server":
            return "200 OK" in self.fleet.network.ask(self.name, 8222, "/healthz") and (
                self.fleet.records() >= self.records + self.fleet.options.peers)
        return self.how != "stop" or self.fleet.refused() > 0


class Fleet:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.random = random.Random(options.seed)
        self.work = options.work.resolve()
        self.ferry = options.programs.resolve() / "ferry"
        self.processes: dict[str, subprocess.Popen] = {}
        self.begin = time.monotonic()
        # When a gateway was stopped: number, from, to.
        self.stopped: list[tuple[int, float, float]] = []
        self.made: dict[str, int] = {}
        self.troubles: list[Trouble] = []
        self.bags: dict[str, list[str]] = {}
        self.ended: list[str] = []
        self.given = [0] * options.peers
        # So small with --once that every gateway hears every peer; otherwise one is heard for 63 m.
        self.hall = 40.0 if options.once else 120.0
        self.places = [
            [self.random.uniform(0, self.hall), self.random.uniform(0, self.hall / 2)] for _ in range(options.peers)]
        self.servers = [f"server-{number}" for number in range(SERVERS)]
        self.gateways = [f"gateway-{number}" for number in range(options.gateways)]
        # The hall's needs no network: it is there so that what a killed run left running is found.
        self.network = Network([*self.servers, *self.gateways, "consumer", "hall"])
        if options.once:
            for name in self.servers:
                self.network.be_impatient(name)
        megabytes = 96 + int(16 * options.minutes)
        self.disks = {name: Disk(name, self.work / name, megabytes) for name in self.servers}
        self.disks |= {name: Disk(name, self.work / name, 16 + int(options.minutes)) for name in self.gateways}
        self.addresses = [f"nats://{self.network.nodes[name]}:4222" for name in self.servers]

    def note(self, line: str) -> None:
        print(f"{time.monotonic() - self.begin:7.1f} s  {line}", flush=True)

    def log_since(self, name: str, length: int) -> str:
        with (self.work / f"{name}.log").open(errors="replace") as log:
            log.seek(length)
            return log.read()

    def length_of_log(self, name: str) -> int:
        return (self.work / f"{name}.log").stat().st_size

    # Processes

    def run_in(self, node: str, name: str, command: list, **how) -> subprocess.Popen:
        # A nats-server that loses its disk leaves files where it runs.
        how = {"stdin": subprocess.DEVNULL, "cwd": self.work, **how}
        with (self.work / f"{name}.log").open("a") as log:
            self.processes[name] = subprocess.Popen(
                [str(word) for word in (*self.network.entering(node), *command)], stdout=log, stderr=log, **how)
        return self.processes[name]

    def start(self, name: str) -> None:
        kind, _, number = name.partition("-")
        {"server": self.server, "gateway": self.gateway, "peer": self.peer, "consumer": self.consumer}[kind](name, number)

    def server(self, name: str, number: str) -> None:
        routes = ", ".join(f'"nats-route://{self.network.nodes[each]}:6222"' for each in self.servers)
        configuration = self.work / f"{name}.conf"
        configuration.write_text(f"""
server_name: {name}
listen: "{self.network.nodes[name]}:4222"
http: "127.0.0.1:8222"
write_deadline: "2s"
jetstream {{ store_dir: "{self.work}/{name}", max_file_store: {96 + int(16 * self.options.minutes)}M, max_memory_store: 16M }}
cluster {{ name: fleet, listen: "{self.network.nodes[name]}:6222", routes: [{routes}] }}
""")
        self.run_in(name, name, [self.options.server, "-c", configuration])

    def gateway(self, name: str, number: str) -> None:
        (self.work / f"{name}.json").write_text(json.dumps({
            "name": name, "store": f"{self.work}/{name}/store.ferry", "transport": f"hci:unix:{self.work}/air/{number}",
            "nats": {"servers": self.addresses, "streamReplicas": 3, "streamBytes": (32 + int(4 * self.options.minutes)) << 20},
            "fleet": {"bucket": "leases", "leaseSeconds": self.options.lease, "capacity": self.options.peers}, "statusSeconds": 1,
            # Few with --once, where most peers are to be free when a gateway is stopped.
            "slots": 2 if self.options.once else 4}))
        self.run_in(name, name, [self.ferry, "gateway", "--config", self.work / f"{name}.json"])

    def peer(self, name: str, number: str) -> None:
        controller = self.options.gateways + int(number)
        self.run_in(
            "hall", name,
            [self.ferry, "send", "--store", self.work / f"{name}.ferry", "--transport",
             f"hci:unix:{self.work}/air/{controller}", "--listen", "--fleet", "--timeout", "3600", "--lines", "-"],
            stdin=subprocess.PIPE, text=True, bufsize=1)

    def consumer(self, name: str, _: str) -> None:
        self.run_in("consumer", name, [
            self.options.python, ROOT / "Examples/Gateway/consumer.py", ",".join(self.addresses), "ferry",
            self.work / "table"])

    def restart_what_ended(self) -> None:
        """Systemd would. A gateway that ends by itself is a fault all the same."""
        killed = [trouble.name for trouble in self.troubles if trouble.how == "kill"]
        for name in [*self.gateways, *self.servers, "consumer"]:
            code = self.processes[name].poll()
            if code is not None and name not in killed:
                self.ended.append(f"{name} ended by itself with {code}")
                self.note(self.ended[-1])
                self.start(name)

    # What the consumer's table says

    def ask(self, words: str, *values: object) -> list:
        try:
            return sqlite3.connect(self.work / "table", timeout=30).execute(words, values).fetchall()
        except sqlite3.OperationalError:
            return []

    def records(self) -> int:
        return sum(row[0] for row in self.ask("SELECT count(*) FROM record"))

    def refused(self) -> int:
        return sum(row[0] for row in self.ask("SELECT count(*) FROM refused"))

    def last_row(self) -> int:
        return sum(row[0] or 0 for row in self.ask("SELECT max(rowid) FROM record"))

    def owned_by(self, gateway: str) -> set[str]:
        """The peers of which it has brought the last record."""
        rows = self.ask(
            "SELECT peer FROM record WHERE rowid IN (SELECT max(rowid) FROM record GROUP BY peer) AND gateway = ?", gateway)
        return {row[0] for row in rows}

    def brought_by_others(self, gateway: str, last: int) -> set[str]:
        """The peers of which others have brought a record since a row of the table."""
        return {row[0] for row in self.ask(
            "SELECT DISTINCT peer FROM record WHERE rowid > ? AND gateway <> ?", last, gateway)}

    # What happens

    def run(self) -> int:
        options = self.options
        self.air = air = Air(
            [*self.network.entering("hall"), options.programs.resolve() / "virtual-controllers"], self.work,
            options.gateways + options.peers)
        self.processes["air"] = air.process
        for name in self.servers:
            self.start(name)
        # In a row through the hall, so that most places hear two gateways.
        for number in range(options.gateways):
            x, y = self.hall * (number + 0.5) / options.gateways, self.hall / (4 if number % 2 else 2)
            air.say(f"place {number} {x:.1f} {y:.1f}")
        air.say(f"loss * * {options.loss}")
        self.walk()
        wait_until("three servers", lambda: all(
            "200 OK" in self.network.ask(name, 8222, "/healthz") for name in self.servers))
        for name in self.gateways:
            self.start(name)
            wait_until(f"{name} at work", lambda: "connected, " in self.log_since(name, 0).replace("not connected, ", ""))
        for number in range(options.peers):
            self.start(f"peer-{number}")
        self.start("consumer")
        wait_until("a first record of each peer", lambda: self.step() or len(
            self.ask("SELECT DISTINCT peer FROM record")) == options.peers, 120 + options.peers * 5)
        self.note("each peer has been heard of")
        if options.once:
            self.go_through_rounds()
        else:
            self.make_trouble_until(time.monotonic() + options.minutes * 60)
        self.note("no more trouble; the peers come to their end")
        for number in range(options.peers):
            self.processes[f"peer-{number}"].stdin.close()
        patience = time.monotonic() + 180 + options.minutes * 20
        waiting = set(range(options.peers))
        while time.monotonic() < patience:
            time.sleep(1)
            self.walk()
            self.restart_what_ended()
            waiting = {number for number in waiting if self.processes[f"peer-{number}"].poll() is None}
            if not waiting and self.records() >= sum(self.given):
                break
        return self.judge(waiting)

    def step(self) -> None:
        """A second of the hall's life."""
        time.sleep(1)
        for number in range(self.options.peers):
            if (code := self.processes[f"peer-{number}"].poll()) is not None:
                raise ChildProcessError(f"peer-{number} ended with {code} though it was still to send; see its log")
        self.walk()
        self.feed()
        self.restart_what_ended()
        for trouble in self.troubles:
            trouble.keep()

    def walk(self) -> None:
        for number, place in enumerate(self.places):
            place[0] = min(self.hall, max(0, place[0] + self.random.uniform(-3, 3)))
            place[1] = min(self.hall / 2, max(0, place[1] + self.random.uniform(-3, 3)))
            self.air.say(f"place {self.options.gateways + number} {place[0]:.1f} {place[1]:.1f}")
        # One in a hundred is carried through the hall.
        if self.random.random() < len(self.places) / 100:
            self.random.choice(self.places)[0] = self.random.uniform(0, self.hall)

    def feed(self) -> None:
        for number in range(self.options.peers):
            process = self.processes[f"peer-{number}"]
            if self.random.random() < 0.5:
                process.stdin.write(f"{number} {self.given[number] + 1}\n")
                self.given[number] += 1

    def victim(self, what: str) -> int:
        """With --once the gateway that has the most peers."""
        if what == "server":
            return self.random.randrange(SERVERS)
        if not self.options.once:
            return self.random.randrange(self.options.gateways)
        return max(range(self.options.gateways), key=lambda number: len(self.owned_by(self.gateways[number])))

    def until(self, what: str, condition, seconds: float = 120) -> None:
        wait_until(what, lambda: self.step() or condition(), seconds)

    def go_through_rounds(self) -> None:
        for of_gateway, of_server in ROUNDS:
            self.troubles = [
                Trouble(self, what, how) for what, how in (("server", of_server), ("gateway", of_gateway)) if how]
            for trouble in self.troubles:
                self.until(f"{trouble.name}: what comes of {trouble.how}", trouble.is_seen)
                self.note(f"{trouble.name}: {trouble.how} has shown what it does")
            troubles, self.troubles = self.troubles, []
            for trouble in troubles:
                trouble.undo()
            for trouble in troubles:
                self.until(f"{trouble.name}: well again after {trouble.how}", trouble.is_well)
        self.note("all are well again")

    def make_trouble_until(self, end: float) -> None:
        """One of a server and one of a gateway at most at once, for up to three leases; of each kind about as many."""
        due = {what: time.monotonic() + self.random.uniform(5, 20) for what in KINDS}
        recovering: Trouble | None = None
        while time.monotonic() < end or self.troubles or recovering:
            self.step()
            now = time.monotonic()
            for trouble in [each for each in self.troubles if each.lasts_until <= now]:
                self.troubles.remove(trouble)
                trouble.undo()
                due[trouble.what] = now + self.random.uniform(8, 25)
                if trouble.what == "server":
                    recovering, trouble.undone = trouble, now
            if recovering and recovering.is_well():
                self.note(f"{recovering.name}: well again after {now - recovering.undone:.0f} s")
                recovering = None
            if recovering and now > recovering.undone + 300:
                raise TimeoutError(f"{recovering.name}: not well again 300 s after {recovering.how}")
            for what, kinds in KINDS.items():
                if now < due[what] or now > end or any(each.what == what for each in self.troubles):
                    continue
                # Three replicas bear one loss. One that catches up is still lost, and one whose disk was emptied has forgotten
                # how it voted: with a second one away it would elect a server that lacks what was promised.
                if what == "server" and recovering:
                    continue
                if not self.bags.get(what):
                    self.bags[what] = self.random.sample(kinds, len(kinds))
                trouble = Trouble(self, what, self.bags[what].pop())
                trouble.lasts_until = now + self.random.uniform(3, 3 * self.options.lease)
                self.troubles.append(trouble)

    # What came of it

    def judge(self, waiting: set) -> int:
        faults = list(self.ended)
        if waiting:
            faults.append(f"peers {sorted(waiting)} still wait for somebody to take their records")
        for number in range(self.options.peers):
            code = self.processes[f"peer-{number}"].poll()
            if code not in (None, 0):
                faults.append(f"peer-{number} ended with {code}; see its log")
        senders: dict[str, list] = {}
        arrivals: dict[tuple, list] = {}
        for name, gateway, arrived, data in self.ask("SELECT name, gateway, arrived, bytes FROM record"):
            sender, _, _, sequence = name.split("/")
            senders.setdefault(sender, []).append((int(sequence), data.decode()))
            arrivals.setdefault((sender, gateway), []).append((arrived, int(sequence)))
        found: dict[int, list] = {}
        for rows in senders.values():
            values = [text.split() for _, text in sorted(rows)]
            found.setdefault(int(values[0][0]), []).extend(int(value[1]) for value in values)
        for number in range(self.options.peers):
            have = found.get(number, [])
            if have != list(range(1, self.given[number] + 1)):
                missing = sorted(set(range(1, self.given[number] + 1)) - set(have))
                faults.append(
                    f"peer {number}: {len(have)} records of {self.given[number]}, missing {missing[:10]}, "
                    f"{len(have) - len(set(have))} twice, in order: {have == sorted(have)}")
        for (sender, gateway), rows in arrivals.items():
            sequences = [sequence for _, sequence in sorted(rows)]
            if sequences != sorted(sequences):
                faults.append(f"{gateway} has published records of {sender} out of their order")
        refused = self.refused()
        if not refused:
            faults.append("no claim that came too late was refused: nothing has shown that it would be")
        faults += self.doubles()
        faults += self.air.complaints
        ups = sum(1 for change in self.air.changes if change[1] == "up")
        self.note(", ".join(f"{count} x {kind}" for kind, count in sorted(self.made.items())))
        if self.network.ways:
            self.note(f"slow: {self.network.ways}")
        self.note(
            f"{sum(self.given)} records of {self.options.peers} peers, {self.records()} in the table; {ups} connections, "
            f"{refused} late claims refused")
        for fault in faults:
            print(f"!! {fault}")
        return 1 if faults else 0

    def doubles(self) -> list[str]:
        """Peers that were connected to two gateways at once, of which none was stopped or just woken up."""
        holders: dict[int, dict[int, float]] = {}
        faults = []
        for when, what, one, other in self.air.changes:
            gateway, peer = min(one, other), max(one, other)
            if what == "down":
                holders.get(peer, {}).pop(gateway, None)
                continue
            for holder, since in holders.get(peer, {}).items():
                # The controller of one that is stopped keeps its connections, which it ends when it wakes up.
                if not any(
                    number == holder and since <= finish and begin <= when <= finish + 10
                    for number, begin, finish in self.stopped
                ):
                    faults.append(
                        f"peer-{peer - self.options.gateways} was connected to gateway-{holder} and gateway-{gateway} at "
                        f"{when:.3f} of the air's log")
            holders.setdefault(peer, {})[gateway] = when
        return faults

    def end(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
        for process in self.processes.values():
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--server", default="nats-server", help="the nats-server that runs")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--once", action="store_true", help="each trouble once, in a fixed order, instead of minutes")
    parser.add_argument("--gateways", type=int, default=4)
    parser.add_argument("--peers", type=int, default=100)
    parser.add_argument("--lease", type=int, default=10)
    parser.add_argument("--loss", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.once:
        options.minutes = 1
    end_on_signals()
    if obstacle := check():
        print(f"fleet: {obstacle}", file=sys.stderr)
        return 1
    remove_leftovers()
    fleet = None
    try:
        fleet = Fleet(options)
        return fleet.run()
    except (TimeoutError, OSError) as error:
        print(f"!! {error}")
        return 1
    finally:
        if fleet:
            fleet.end()
        remove_all_of(os.getpid())


if __name__ == "__main__":
    sys.exit(main())
