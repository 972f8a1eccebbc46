#!/usr/bin/env python3
"""Holds the descriptions of sensors in Tests/Interop/home-assistant.json, which the tests of FerryMQTT make, to what Home Assistant takes:
its own schema of a discovered sensor, its rule for topics, and its templates, which must find a record's value. `scripts/interop home`
runs it with the package `homeassistant`. Ends with 1 when something does not hold."""

import json
import sys
from pathlib import Path

import voluptuous
from homeassistant.components.mqtt import discovery, sensor
from homeassistant.helpers.template import TemplateEnvironment

rows = json.loads((Path(__file__).parent / "home-assistant.json").read_text())
failures = []
for row in rows:
    prefix, topic = row.get("prefix", "homeassistant"), row["topic"]
    match = discovery.TOPIC_MATCHER.match(topic.removeprefix(prefix + "/"))
    if not match or match.groups()[0] != "sensor":
        failures.append(f"{topic} is no topic of discovery")
    payload = json.loads(row["payload"])
    try:
        config = sensor.DISCOVERY_SCHEMA(dict(payload))
    except voluptuous.Invalid as wrong:
        failures.append(f"{topic}: {wrong}")
        continue
    # What the schema drops, Home Assistant does not know.
    if lost := set(payload) - {str(key) for key in config}:
        failures.append(f"{topic}: Home Assistant knows no {', '.join(sorted(lost))}")
    value = TemplateEnvironment(None).from_string(payload["value_template"]).render(
        value=row["record"], value_json=json.loads(row["record"]))
    if value != row["value"]:
        failures.append(f"{topic}: the template finds {value!r} and not {row['value']!r}")
print("\n".join(failures) or f"home: Home Assistant takes {len(rows)} descriptions")
sys.exit(1 if failures or not rows else 0)
