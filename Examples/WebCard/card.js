// Exchanges a business card with `business-card serve --save FILE` or another peer: it sends its card, and takes this one.

import { FerryChannel, FerryError, errors } from "./ferry/ferry.js";

const service = "e07f0ae8-00bb-47f5-94f4-4a7174ea3032";
const characteristic = "9d534e8b-2153-4f6d-b2b0-8c68665a7274";
const fields = ["firstName", "lastName", "organization", "location", "contact"];
const framings = {
    eom: { kind: "end-of-message", chunkSize: 20 }, length: { kind: "length-prefix" },
    sequenced: { kind: "sequenced", codec: "json" },
};
const element = (id) => document.getElementById(id);
const form = element("form");

function show(status, isFailure = false) {
    element("state").hidden = false;
    element("state").classList.toggle("failed", isFailure);
    element("status").textContent = status;
}

/** Bytes so far, and how fast they go. */
function meter(total) {
    const begin = performance.now();
    element("progress").value = 0;
    return (count) => {
        const seconds = (performance.now() - begin) / 1000;
        const speed = seconds > 0 ? `, ${Math.round(count / seconds).toLocaleString("en")} bytes/s` : "";
        element("progress").value = total > 0 ? count / total : 1;
        element("figures").textContent = `${count} of ${total} bytes${speed}`;
    };
}

/** The five texts of the peer's card; other fields are ignored. Throws for a message that is no card. */
function read(message) {
    const card = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(message));
    if (card === null || typeof card !== "object" || Array.isArray(card)) throw new SyntaxError("no card");
    return Object.fromEntries(fields.map((field) => [field, typeof card[field] === "string" ? card[field] : ""]));
}

function present(card) {
    element("name").textContent = [card.firstName, card.lastName].filter(Boolean).join(" ") || card.organization;
    for (const field of ["organization", "location", "contact"]) element(field).textContent = card[field];
    element("received").hidden = false;
}

/** What went wrong and what to do, for people. */
function explain(error) {
    if (error instanceof SyntaxError || error instanceof TypeError) {
        return "What arrived is no business card. Check that the device uses the same framing.";
    }
    if (error instanceof FerryError && error.code === errors.ORDER) return "The device has disconnected. Try again.";
    if (error instanceof FerryError) return error.message;
    if (error.name === "NotFoundError") return "No device was chosen.";
    if (error.name === "AbortError") return "Cancelled.";
    if (error.name === "TimeoutError") return "The device did not answer within 30 seconds. Check that it uses the same framing.";
    if (error.name === "NetworkError") return "The connection failed. Move closer and try again.";
    if (error.name === "SecurityError") return "The browser does not allow it here. Open the page over HTTPS or from localhost.";
    return error.message || String(error);
}

/** Rejects when the signal is aborted. */
const unless = (signal, promise) => Promise.race([
    promise, new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))]);

async function exchange(card, options, abort) {
    const { signal } = abort;
    show("Choose the device in the browser's window.");
    const device = await navigator.bluetooth.requestDevice({ filters: [{ services: [service] }] });
    let channel;
    // Only now: choosing may take longer.
    const timer = setTimeout(() => abort.abort(new DOMException("", "TimeoutError")), 30_000);
    try {
        show(`Connecting to ${device.name ?? "the device"}…`);
        const server = await unless(signal, device.gatt.connect());
        const found = await (await server.getPrimaryService(service)).getCharacteristic(characteristic);
        // The page disconnects when it has both cards. What was only handed to the radio would be lost then, so each write is
        // acknowledged; the sequenced framing has acknowledgements of its own.
        const withResponse = found.properties.write && options.framing.kind !== "sequenced";
        channel = await unless(signal, FerryChannel.overCharacteristics({ write: found }, { ...options, withResponse }));
        const message = new TextEncoder().encode(JSON.stringify(card));
        const report = meter(message.length);
        show("Sending your card…");
        await channel.send(message, { signal, onProgress: report });
        report(message.length);
        show("Your card is sent. Waiting for theirs…");
        const received = await unless(signal, channel.receive());
        present(read(received));
        show("Cards are exchanged.");
    } finally {
        clearTimeout(timer);
        channel?.close();
        device.gatt.disconnect();
    }
}

form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const values = new FormData(form);
    const card = Object.fromEntries(fields.map((field) => [field, values.get(field).trim()]));
    const framing = { ...framings[values.get("framing")] };
    const chunkSize = Number(values.get("chunkSize"));
    if (framing.chunkSize) framing.chunkSize = chunkSize;
    const abort = new AbortController();
    const cancel = () => abort.abort(new DOMException("", "AbortError"));
    element("received").hidden = true;
    element("figures").textContent = "";
    element("progress").value = 0;
    element("connect").disabled = true;
    element("cancel").hidden = false;
    element("cancel").addEventListener("click", cancel);
    try {
        await exchange(card, { framing, chunkSize, limits: { message: 65_536, outbound: 65_536, inbound: 131_072 } }, abort);
    } catch (error) {
        console.error(error);
        show(explain(error), true);
    } finally {
        element("cancel").removeEventListener("click", cancel);
        element("cancel").hidden = true;
        element("connect").disabled = false;
    }
});

function complain(advice) {
    element("advice").textContent = advice;
    element("missing").hidden = false;
    element("connect").disabled = true;
}
if (!window.isSecureContext) {
    complain("It is there on secure pages only. Open this page over HTTPS, or from localhost.");
} else if (!navigator.bluetooth) {
    complain("It is what lets a page reach a device nearby, once you have chosen it.");
} else if (await navigator.bluetooth.getAvailability().catch(() => true) === false) {
    complain("The browser has it, but finds no Bluetooth here. Switch Bluetooth on, or plug an adapter in, and reload.");
    element("missing").querySelector("h2").textContent = "Bluetooth is off or missing";
    element("missing").querySelector("ul").hidden = true;
}
