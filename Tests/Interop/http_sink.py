#!/usr/bin/env python3
"""A server that takes batches of CloudEvents, read by the SDK of cloudevents.io: each is a line `source|id|hexadecimal digits` in
FOLDER/heard, on the disk before the answer. While FOLDER/is-full is there it answers 503; with more than 100 000 bytes in an event, 413;
where FOLDER/status is there, what stands in it. FOLDER/requests has how many events each request had, FOLDER/refusals a dot for each 503. With FOLDER/certificate.pem and
FOLDER/key.pem it speaks TLS, and asks for a certificate that the first one has signed."""

import json
import os
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cloudevents.conversion import from_json
from cloudevents.http import CloudEvent

host, port, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
lock = threading.Lock()
LARGEST = 100_000


def line(event: CloudEvent) -> tuple[str, bytes]:
    data = event.data
    if data is None:
        data = b""
    elif not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return f"{event['source']}|{event['id']}|{data.hex()}\n", data


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words) -> None:
        pass

    def answer(self, status: int, text: str = "", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_OPTIONS(self) -> None:
        if (folder / "token").exists() and self.headers["Authorization"] != (folder / "token").read_text().strip():
            return self.answer(401, "no such token")
        self.answer(204)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if (folder / "is-full").exists():
            with open(folder / "refusals", "a") as file:
                file.write(".")
            return self.answer(503, "the table is full", Retry_After="0")
        if (folder / "status").exists():
            return self.answer(int((folder / "status").read_text()), "as it was told")
        if not self.headers["Content-Type"].startswith("application/cloudevents-batch+json"):
            return self.answer(415)
        events = [line(from_json(CloudEvent, json.dumps(event))) for event in json.loads(body)]
        if any(len(data) > LARGEST for _, data in events):
            return self.answer(413, "it is too large")
        with lock:
            with open(folder / "requests", "a") as file:
                file.write(f"{len(events)}\n")
            with open(folder / "heard", "a") as file:
                file.write("".join(text for text, _ in events))
                file.flush()
                os.fsync(file.fileno())
        self.answer(204)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


server = Server((host, port), Handler)
if (folder / "key.pem").exists():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "certificate.pem")
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
(folder / "port").write_text(str(server.server_address[1]))
server.serve_forever()
