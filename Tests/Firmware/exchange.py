"""Exchanges between the sensor of Examples/Firmware in QEMU and Ferry's programs: cards in both directions, and readings over a line
that is lost and from a board that is reset.

    exchange.py SENSOR.elf TARGET PROGRAMS CHUNK...

PROGRAMS is the folder of `ferry` and `business-card`.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../Examples/Firmware"))
from pipe import Pipe

SECONDS = 60
MACHINES = {
    "armv7em": ["qemu-system-arm", "-M", "mps2-an386"],
    "riscv32": ["qemu-system-riscv32", "-M", "virt", "-bios", "none"],
}


class Board:
    """A board in QEMU. `control` speaks QMP."""

    def __init__(self, target, program, folder):
        self.serial = os.path.join(folder, "serial")
        monitor = os.path.join(folder, "monitor")
        self.console_path = os.path.join(folder, "console")
        self.console_file = open(self.console_path, "wb")
        self.process = subprocess.Popen(
            MACHINES[target]
            + ["-display", "none", "-monitor", "none", "-serial", f"unix:{self.serial},server=on,wait=off"]
            + ["-qmp", f"unix:{monitor},server=on,wait=off", "-chardev", "stdio,id=console"]
            + ["-semihosting-config", "enable=on,target=native,chardev=console", "-kernel", program],
            stdin=subprocess.DEVNULL, stdout=self.console_file, stderr=subprocess.STDOUT)
        self.control = socket.socket(socket.AF_UNIX)
        self.control.settimeout(SECONDS)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.control.connect(monitor)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self.answers = self.control.makefile("rb")
        self.answers.readline()
        self.command("qmp_capabilities")

    def command(self, name):
        """Returns when it is carried out; a reset, when the board is."""
        self.control.sendall(json.dumps({"execute": name}).encode() + b"\n")
        expected = {"return"} | ({"RESET"} if name == "system_reset" else set())
        while expected:
            line = json.loads(self.answers.readline())
            if "error" in line:
                raise RuntimeError(line)
            expected -= {"return" if "return" in line else line.get("event")}

    def reset(self):
        self.command("system_reset")

    def console(self):
        with open(self.console_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.console_file.close()


class Failure(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Failure(what)


def run(command, pipe, log):
    """Runs a program while the pipe moves chunks; returns its output."""
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + SECONDS
        try:
            pipe.run(lambda: process.poll() is not None or time.monotonic() > deadline)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    check(process.returncode == 0, f"{os.path.basename(command[0])} ended with {process.returncode}: {text}")
    return text


@contextlib.contextmanager
def board_of(target, program):
    with tempfile.TemporaryDirectory() as folder:
        board = Board(target, program, folder)
        try:
            yield board, folder
        except Exception:
            print(f"the board's console:\n{board.console()}", file=sys.stderr)
            raise
        finally:
            board.close()


def exchange_cards(target, program, programs, framing, chunk):
    theirs = {"firstName": "Ada", "lastName": "Lovelace", "organization": "", "location": "London", "contact": "é"}
    with board_of(target, program) as (board, folder):
        with open(os.path.join(folder, "theirs.json"), "w") as file:
            json.dump(theirs, file)
        pipe = Pipe(board.serial, "card", framing, chunk)
        run(
            [os.path.join(programs, "business-card"), "receive", "--transport", f"tcp:127.0.0.1:{pipe.port}"]
            + ["--framing", framing, "--chunk", str(chunk), "--card", f"{folder}/theirs.json"]
            + ["--save", f"{folder}/arrived.json"], pipe, f"{folder}/log")
        deadline = time.monotonic() + 10
        pipe.run(lambda: "got the card" in board.console() or time.monotonic() > deadline)
        with open(os.path.join(folder, "arrived.json")) as file:
            arrived = json.load(file)
        check(arrived["lastName"] == "Sensor" and "Analytical Engine" in arrived["organization"], f"arrived: {arrived}")
        lines = [line for line in board.console().splitlines() if "got the card " in line]
        check(len(lines) == 1 and json.loads(lines[0].split("got the card ")[1]) == theirs, f"at the board: {lines}")
        check(max(pipe.chunks) == chunk, f"chunks of {sorted(pipe.chunks)} bytes")
        print(f"{target}: cards crossed both ways, {framing}, chunks of {chunk}", flush=True)


def expected_readings():
    log, number = b"", 0
    while True:
        line = f"{number},{2000 + number * number % 2**32 % 701}\n".encode()
        if len(log) + len(line) > 24 << 10:
            return log
        log, number = log + line, number + 1


def ship_readings(target, program, programs, framing, chunk):
    """The line is lost after a third, and the board is reset after two thirds of the bytes."""
    readings = expected_readings()
    with board_of(target, program) as (board, folder):
        steps = [("line", len(readings) // 3), ("board", len(readings) // 3 * 2)]

        def on_chunk(sent):
            if not steps or sent < steps[0][1]:
                return
            if steps.pop(0)[0] == "line":
                pipe.lose_line()
            else:
                board.reset()
                pipe.board_was_reset()

        pipe = Pipe(board.serial, "readings", framing, chunk, on_chunk=on_chunk)
        text = run(
            [os.path.join(programs, "ferry"), "receive", f"{folder}/received", "--connect", "--transport"]
            + [f"tcp:127.0.0.1:{pipe.port}", "--framing", framing, "--chunk", str(chunk)], pipe, f"{folder}/log")
        console = board.console()
        check(not steps, f"not everything was lost: {steps} is left")
        with open(f"{folder}/received/readings.csv", "rb") as file:
            arrived = file.read()
        check(arrived == readings, f"{len(arrived)} bytes arrived, which are not the {len(readings)} of the board: {text}")
        check("with the readings of before" in console, "the board was not started again with its readings")
        check(console.count("goes on in the middle") == 2, "the sensor did not go on twice in the middle")
        check(console.count("begins at the first reading") == 1, "the sensor began anew")
        check(pipe.bytes_sent < 1.5 * len(readings), f"{pipe.bytes_sent} bytes were sent for {len(readings)}")
        count = readings.count(b"\n")
        print(
            f"{target}: {count} readings arrived once, {framing}, chunks of {chunk}: line lost and board reset,"
            f" {pipe.bytes_sent} bytes sent for {len(readings)}", flush=True)


def main():
    program, target, programs, *chunks = sys.argv[1:]
    try:
        for chunk in map(int, chunks):
            for framing in ["eom", "length", "sequenced"]:
                exchange_cards(target, program, programs, framing, chunk)
            for framing in ["length", "sequenced"]:
                ship_readings(target, program, programs, framing, chunk)
    except Failure as failure:
        sys.exit(f"exchange: {target}: {failure}")


main()
