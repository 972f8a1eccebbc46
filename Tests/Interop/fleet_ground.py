"""What a fleet stands on: a network of namespaces that can be parted, and disks that can be filled. Needs root and iproute2.

Each node has a network namespace with one address, and all are plugged into one bridge, in a namespace of its own: nothing of it
is seen outside. Disks are tmpfs. All has the script's process in its name; what one that was killed has left, the next removes.
"""

import ctypes
import ipaddress
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

PREFIX = "ferry-fleet"
NAMESPACES = pathlib.Path("/run/netns")
NETWORK = ipaddress.ip_network("10.77.0.0/24")
# Of nobody: what is sent there is lost.
NOWHERE = "02:00:00:00:00:fe"


def command(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(str(word) for word in words)}: {done.stderr.strip() or done.returncode}")


def wait_until(what: str, condition, seconds: float = 120) -> None:
    """Ends everything where it does not come true: generous, for a machine that does other things is slow."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not after {seconds:.0f} s")
        time.sleep(0.2)


def is_alive(process: int) -> bool:
    """Whether it is a process of this script."""
    try:
        return b"fleet.py" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def remove_all_of(process: int) -> None:
    """Ends what runs in a process' namespaces, and removes them and its disks."""
    names = [each.name for each in NAMESPACES.glob(f"{PREFIX}-{process}-*")] if NAMESPACES.exists() else []
    for name in names:
        inside = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        for each in inside:
            try:
                os.kill(int(each), signal.SIGKILL)
            except ProcessLookupError:
                pass
    end = time.monotonic() + 30
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        source, place = line.split()[:2]
        if source.startswith(f"{PREFIX}-{process}-"):
            # Whoever was killed has its files open for a moment longer.
            while subprocess.run(["umount", place], capture_output=True).returncode and time.monotonic() < end:
                time.sleep(0.1)
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def remove_leftovers() -> None:
    """What was left by runs that have ended without removing it."""
    left = [each.name for each in NAMESPACES.glob(f"{PREFIX}-*")] if NAMESPACES.exists() else []
    left += [line.split()[0] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    for process in {int(found[1]) for name in left if (found := re.match(rf"{PREFIX}-(\d+)-", name))}:
        if not is_alive(process):
            remove_all_of(process)


def check() -> str | None:
    """What is in the way of making namespaces and disks, and what to do."""
    if os.geteuid() != 0:
        return "This makes network namespaces and mounts disks: run it as root, or in a container with --privileged."
    missing = [name for name in ("ip", "tc", "nsenter", "mount", "umount") if not shutil.which(name)]
    if missing:
        return f"There is no {', '.join(missing)}: run scripts/setup interop, or install iproute2 and util-linux."
    name = f"{PREFIX}-{os.getpid()}-check"
    try:
        command("ip", "netns", "add", name)
        command("ip", "netns", "del", name)
    except OSError as error:
        return f"No network namespace can be made: {error}. Run it on a machine, or in a container with --privileged."
    return None


class Network:
    """Nodes at one bridge."""

    def __init__(self, nodes: list[str]):
        self.nodes = {name: str(NETWORK[10 + number]) for number, name in enumerate(nodes)}
        self.ways = ""
        command("ip", "netns", "add", self.namespace("switch"))
        self.switch("ip", "link", "add", "bridge", "type", "bridge")
        self.switch("ip", "link", "set", "bridge", "up")
        for number, name in enumerate(nodes):
            command("ip", "netns", "add", self.namespace(name))
            self.switch(
                "ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "way", "netns", self.namespace(name))
            self.switch("ip", "link", "set", f"port{number}", "master", "bridge", "up")
            self.inside(name, "ip", "address", "add", f"{self.nodes[name]}/{NETWORK.prefixlen}", "dev", "way")
            self.inside(name, "ip", "link", "set", "way", "up")
            self.inside(name, "ip", "link", "set", "lo", "up")

    @staticmethod
    def namespace(node: str) -> str:
        return f"{PREFIX}-{os.getpid()}-{node}"

    def entering(self, node: str) -> list[str]:
        """The words before a command that is to run in a node."""
        return ["nsenter", f"--net={NAMESPACES}/{self.namespace(node)}", "--"]

    def inside(self, node: str, *words: object) -> None:
        command(*self.entering(node), *words)

    def switch(self, *words: object) -> None:
        self.inside("switch", *words)

    def be_impatient(self, node: str) -> None:
        """Its connections end after some 3 s without an answer, where they would wait for ever longer, and go on late."""
        self.inside(node, "sh", "-c", "echo 3 >/proc/sys/net/ipv4/tcp_retries2")

    def port(self, node: str) -> str:
        return f"port{list(self.nodes).index(node)}"

    # Each undoes itself by its second half.

    def cut(self, node: str) -> None:
        """Nothing gets to it, and nothing from it; nobody is told."""
        self.switch("ip", "link", "set", self.port(node), "down")

    def mend(self, node: str) -> None:
        self.switch("ip", "link", "set", self.port(node), "up")

    def part(self, one: str, other: str) -> None:
        """Two do not reach one another, while all others reach both."""
        for here, there in ((one, other), (other, one)):
            self.inside(
                here, "ip", "neigh", "replace", self.nodes[there], "lladdr", NOWHERE, "dev", "way", "nud", "permanent")

    def join(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            self.inside(here, "ip", "neigh", "del", self.nodes[there], "dev", "way")

    def slow(self, node: str) -> None:
        """What goes to it and from it takes long, and some is lost. Where the kernel has no netem, by a narrow way."""
        try:
            self.shape(node, "netem", "delay", "150ms", "100ms", "loss", "10%")
            self.ways = "netem: 150 ms +- 100 ms, 10 % lost"
        except OSError:
            self.shape(node, "tbf", "rate", "256kbit", "burst", "4000", "latency", "400ms")
            self.ways = "tbf: 256 kbit/s, lost after 400 ms"

    def shape(self, node: str, *words: str) -> None:
        self.inside(node, "tc", "qdisc", "replace", "dev", "way", "root", *words)
        self.switch("tc", "qdisc", "replace", "dev", self.port(node), "root", *words)

    def quicken(self, node: str) -> None:
        self.inside(node, "tc", "qdisc", "del", "dev", "way", "root")
        self.switch("tc", "qdisc", "del", "dev", self.port(node), "root")

    def socket(self, node: str) -> socket.socket:
        """One of a node's: a socket stays in the namespace in which it was made."""
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(NAMESPACES / self.namespace(node), os.O_RDONLY)
        try:
            enter(there)
            try:
                made = socket.socket()
            finally:
                enter(home)
        finally:
            os.close(home)
            os.close(there)
        made.settimeout(2)
        return made

    def reaches(self, one: str, other: str, port: int) -> bool:
        """Whether one can connect to another."""
        with self.socket(one) as made:
            try:
                made.connect((self.nodes[other], port))
                return True
            except OSError:
                return False

    def ask(self, node: str, port: int, path: str) -> str:
        """What a web server in a node answers to someone in it; nothing where it does not."""
        with self.socket(node) as made:
            try:
                made.connect(("127.0.0.1", port))
                made.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                return b"".join(iter(lambda: made.recv(65536), b"")).decode()
            except OSError:
                return ""


def enter(namespace: int) -> None:
    """This thread's network from now on (setns(2))."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, 0):
        raise OSError(ctypes.get_errno(), "setns")


class Disk:
    """A small file system, in memory, that can be filled."""

    def __init__(self, name: str, path: pathlib.Path, megabytes: int):
        self.path = path
        path.mkdir()
        command("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", f"{PREFIX}-{os.getpid()}-{name}", path)

    def fill(self) -> None:
        """Takes what is free. Again and again, while it is to be full: others may make room."""
        with (self.path / "filler").open("ab", buffering=0) as filler:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        filler.write(b"\0" * size)
                except OSError:
                    pass

    def empty(self) -> None:
        (self.path / "filler").unlink(missing_ok=True)


def end_on_signals() -> None:
    """So that what was made is removed however this ends, short of SIGKILL."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda number, _: sys.exit(128 + number))
