#!/usr/bin/env python3
"""A gateway without a server, Prometheus and Alertmanager with the files of Examples/Gateway/Monitoring: the alert that the gateway is not
connected must come to Alertmanager, and the one that it is away after its end. Waits are a second here, and intervals too. `scripts/check
monitoring` runs it. Ends with 1 when one does not come."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

ferry, files = Path(sys.argv[1]), Path(__file__).parents[2] / "Examples/Gateway/Monitoring"
work = Path(tempfile.mkdtemp(prefix="ferry-monitoring-"))
started: list[subprocess.Popen] = []


def free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(name: str, *words) -> subprocess.Popen:
    with open(work / f"{name}.log", "wb") as log:
        started.append(subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, cwd=work))
    return started[-1]


def ask(url: str):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read()


def wait_for(what: str, holds, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if holds():
                return print(f"monitoring: {what}", flush=True)
        except (OSError, ValueError):
            pass  # It has not begun to listen, or says half of an answer.
        if time.monotonic() > end:
            sys.exit(f"monitoring: not within {seconds:.0f} s: {what}. The logs are in {work}.")
        time.sleep(0.2)


metrics, prometheus, alertmanager = free(), free(), free()
for name in ("alerts.yml", "prometheus.yml"):
    text = (files / name).read_text()
    for minutes in ("2m", "5m", "15m"):
        text = text.replace(f"for: {minutes}", "for: 1s")
    text = text.replace("15s", "1s").replace("127.0.0.1:9469", f"127.0.0.1:{metrics}").replace("127.0.0.1:9093", f"127.0.0.1:{alertmanager}")
    (work / name).write_text(text)
(work / "alertmanager.yml").write_text("route: {receiver: nobody, group_wait: 1s}\nreceivers: [{name: nobody}]\n")


def alerts() -> set[str]:
    return {alert["labels"]["alertname"] for alert in json.loads(ask(f"http://127.0.0.1:{alertmanager}/api/v2/alerts"))}


try:
    gateway = start(
        "gateway", ferry, "gateway", "--transport", "unix:s", "--store", "g.store", "--nats", "nats://127.0.0.1:9", "--name", "g", "--metrics",
        f"127.0.0.1:{metrics}")
    wait_for("the gateway has figures", lambda: b"ferry_gateway_connected 0" in ask(f"http://127.0.0.1:{metrics}/metrics"))
    start("alertmanager", shutil.which("prometheus-alertmanager"), "--config.file=alertmanager.yml", "--storage.path=alertmanager",
          f"--web.listen-address=127.0.0.1:{alertmanager}", "--cluster.listen-address=")
    start("prometheus", shutil.which("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data",
          f"--web.listen-address=127.0.0.1:{prometheus}")
    wait_for("FerryGatewayNotConnected came to Alertmanager", lambda: "FerryGatewayNotConnected" in alerts())
    board = json.loads((files / "board.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$gateway", ".*")
            answer = json.loads(ask(f"http://127.0.0.1:{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": query})))
            if answer["status"] != "success":
                sys.exit(f"monitoring: the board asks {query}, which Prometheus does not take")
    print(f"monitoring: Prometheus takes what {len(board['panels'])} panels ask", flush=True)
    gateway.send_signal(signal.SIGINT)
    gateway.wait()
    wait_for("FerryGatewayAway came to Alertmanager", lambda: "FerryGatewayAway" in alerts())
finally:
    for process in started:
        process.kill()
        process.wait()
shutil.rmtree(work)
