"""The radio module of the sensor: between its serial line and a TCP port, to which `ferry` and `business-card` connect.

    pipe.py SERIAL PORT SERVICE FRAMING CHUNK

SERIAL is the Unix socket of QEMU's serial line, SERVICE is card or readings, FRAMING is eom, length or sequenced, and no chunk has
more than CHUNK bytes. README.md has the packets.
"""

import select
import socket
import sys
import time

OPENED, CLOSED, CHUNK, TAKEN, STARTED, CLOSE = range(1, 7)
SERVICES = {"card": 1, "readings": 2}
# Both ends send it after a reset of the board, and pass over what comes before it.
STARTED_PACKET = bytes([STARTED, 0, 5]) + b"Ferry"
FRAMINGS = {"eom": 0, "length": 1, "sequenced": 2}


class Pipe:
    """Moves chunks. `on_chunk` is called with the bytes that the sensor has sent so far; it may call `lose_line`."""

    def __init__(self, serial_path, service, framing, chunk, port=0, on_chunk=lambda bytes_sent: None):
        self.service = bytes([SERVICES[service], FRAMINGS[framing]]) + chunk.to_bytes(2, "big")
        # The link's number stands first in each packet: what was under way over the link before is passed over.
        self.link = 0
        self.chunk, self.on_chunk = chunk, on_chunk
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.serial = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.serial.connect(serial_path)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self.serial.settimeout(30)
        self.peer = None
        self.from_serial = self.from_peer = b""
        self.has_started = False
        self.bytes_sent = self.link_bytes = 0
        self.chunks = {}

    def send_packet(self, kind, data=b""):
        data = bytes([self.link]) + data
        self.serial.sendall(bytes([kind]) + len(data).to_bytes(2, "big") + data)

    def lose_line(self):
        """Ends the connection for both sides at once, whatever was on its way."""
        if self.peer is None:
            return
        self.peer.close()
        self.peer, self.from_peer = None, b""
        self.send_packet(CLOSED)

    def board_was_reset(self):
        """The line from the board is cut in the middle of a packet, and the link has no other end."""
        self.has_started = False
        if self.peer is not None:
            self.peer.close()
            self.peer, self.from_peer = None, b""

    def run(self, is_over):
        """Moves chunks until `is_over()` returns true."""
        while not is_over():
            sockets = [self.serial]
            if self.peer is not None:
                sockets.append(self.peer)
            elif self.has_started:
                sockets.append(self.listener)
            for ready in select.select(sockets, [], [], 0.1)[0]:
                if ready is self.listener:
                    self.peer = self.listener.accept()[0]
                    self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.link, self.link_bytes = (self.link + 1) % 256, 0
                    self.send_packet(OPENED, self.service)
                elif ready is self.serial:
                    self.read_serial()
                elif ready is self.peer:
                    self.read_peer()

    def read_serial(self):
        data = self.serial.recv(65536)
        if not data:
            raise ConnectionError("QEMU has closed the serial line")
        self.from_serial += data
        if not self.has_started:
            place = self.from_serial.find(STARTED_PACKET)
            if place < 0:
                return
            self.from_serial = self.from_serial[place + len(STARTED_PACKET) :]
            self.has_started = True
            self.serial.sendall(STARTED_PACKET)
        while len(self.from_serial) >= 3:
            kind, size = self.from_serial[0], int.from_bytes(self.from_serial[1:3], "big")
            if len(self.from_serial) < 3 + size:
                return
            data, self.from_serial = self.from_serial[3 : 3 + size], self.from_serial[3 + size :]
            self.take_packet(kind, data)

    def take_packet(self, kind, data):
        if kind == STARTED:
            # The answer was late, or the board has been reset and the link has no other end.
            self.serial.sendall(STARTED_PACKET)
            if self.peer is not None and self.link_bytes > 0:
                self.board_was_reset()
                self.has_started = True
            elif self.peer is not None:
                self.send_packet(OPENED, self.service)
            return
        if not data or data[0] != self.link:
            return
        data = data[1:]
        if kind == CLOSE:
            self.lose_line()
        elif kind == CHUNK:
            if not 0 < len(data) <= self.chunk:
                raise ValueError(f"the sensor sent a chunk of {len(data)} bytes; {self.chunk} is the most")
            self.send_packet(TAKEN)
            self.chunks[len(data)] = self.chunks.get(len(data), 0) + 1
            if self.peer is not None:
                try:
                    self.peer.sendall(len(data).to_bytes(2, "big") + data)
                except OSError:
                    return self.lose_line()
                self.bytes_sent += len(data)
                self.link_bytes += len(data)
                self.on_chunk(self.bytes_sent)
        else:
            raise ValueError(f"the sensor sent a packet of kind {kind}")

    def read_peer(self):
        try:
            data = self.peer.recv(65536)
        except OSError:
            data = b""
        if not data:
            return self.lose_line()
        self.from_peer += data
        while len(self.from_peer) >= 2:
            size = int.from_bytes(self.from_peer[:2], "big")
            if len(self.from_peer) < 2 + size:
                return
            data, self.from_peer = self.from_peer[2 : 2 + size], self.from_peer[2 + size :]
            if size > self.chunk:
                raise ValueError(f"the peer sent a chunk of {size} bytes; give it --chunk {self.chunk}")
            self.send_packet(CHUNK, data)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    path, port, service, framing, chunk = sys.argv[1:]
    pipe = Pipe(path, service, framing, int(chunk), int(port))
    print(f"Connect to tcp:127.0.0.1:{pipe.port}", flush=True)
    pipe.run(lambda: False)
