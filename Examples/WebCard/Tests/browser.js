// The page in Chromium, with a peripheral that Chromium emulates: it finds the device, connects, and writes its card in chunks.
// Chromium cannot emulate values that notify, so those are dispatched to the page's own characteristic. The golden vectors hold in
// the browser too. Pictures of the page go to FOLDER.
//
//     node browser.js PACKAGE FOLDER

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { call, listeners, main, open } from "./chromium.js";

const { Session } = await import(pathToFileURL(`${process.argv[2]}/ferry.js`));
const service = "e07f0ae8-00bb-47f5-94f4-4a7174ea3032", characteristic = "9d534e8b-2153-4f6d-b2b0-8c68665a7274";
const address = "09:09:09:09:09:09";

// MARK: The peripheral

/** Serves the card's characteristic; `writes` has the values that the page wrote. */
async function peripheral() {
    const writes = [];
    let id;
    await call("BluetoothEmulation.enable", { state: "powered-on", leSupported: true });
    await call("BluetoothEmulation.simulatePreconnectedPeripheral", {
        address, name: "Ada's card", manufacturerData: [], knownServiceUuids: [service] });
    listeners.add(async ({ method, params }) => {
        if (method === "BluetoothEmulation.gattOperationReceived") {
            if (params.type === "connection" && !id) {
                const { serviceId } = await call("BluetoothEmulation.addService", { address, serviceUuid: service });
                const properties = { read: false, write: true, writeWithoutResponse: true, notify: true };
                id = (await call("BluetoothEmulation.addCharacteristic", {
                    serviceId, characteristicUuid: characteristic, properties })).characteristicId;
                await call("BluetoothEmulation.addDescriptor", {
                    characteristicId: id, descriptorUuid: "00002902-0000-1000-8000-00805f9b34fb" });
            }
            await call("BluetoothEmulation.simulateGATTOperationResponse", { address, type: params.type, code: 0 });
        } else if (method === "BluetoothEmulation.characteristicOperationReceived") {
            if (params.type === "write") writes.push(Uint8Array.from(Buffer.from(params.data, "base64")));
            if (params.writeType !== "write-without-response") {
                await call("BluetoothEmulation.simulateCharacteristicOperationResponse", {
                    characteristicId: params.characteristicId, type: params.type, code: 0 });
            }
        }
    });
    return writes;
}

/** Keeps the characteristic that is notified, and lets a test notify it. */
const hook = `{
    const start = BluetoothRemoteGATTCharacteristic.prototype.startNotifications;
    BluetoothRemoteGATTCharacteristic.prototype.startNotifications = function () { globalThis.notified = this; return start.call(this); };
    globalThis.notify = (bytes) => {
        Object.defineProperty(notified, "value", { value: new DataView(Uint8Array.from(bytes).buffer), configurable: true });
        notified.dispatchEvent(new Event("characteristicvaluechanged"));
    };
}`;

const limits = { message: 65_536, outbound: 65_536, inbound: 131_072 };
const framings = {
    eom: { kind: "end-of-message", chunkSize: 20 }, length: { kind: "length-prefix" },
    sequenced: { kind: "sequenced", codec: "json" } };
const ada = {
    firstName: "Ada", lastName: "Lovelace", organization: "Society for the Promotion of the Analytical Engine",
    location: "12 St James's Square, London", contact: "ada.lovelace@analytical-engine.example" };

/** Exchanges cards by one framing; returns what the page wrote. */
async function exchange(tab, writes, framing, chunkSize, picture) {
    writes.length = 0;
    const peer = await Session.create(framings[framing], limits);
    const clock = () => BigInt(Math.round(performance.now() * 1e6));
    peer.linkOpened(clock());
    peer.enqueue(new TextEncoder().encode(JSON.stringify(ada)), clock());
    await tab.evaluate(`{
        const { elements } = document.getElementById("form");
        elements.framing.value = "${framing}";
        elements.chunkSize.value = ${chunkSize};
        delete globalThis.notified;
    }`);
    await tab.click("connect");
    await tab.until("globalThis.notified");
    let card, taken = 0, isDone = false;
    while (!isDone || !card) {
        while (taken < writes.length) peer.receive(writes[taken++], clock());
        for (let event; (event = peer.nextEvent(clock()));) if (event.kind === "received") card = event.message;
        for (let chunk; (chunk = peer.nextChunk(20, clock()));) {
            if (picture && taken === 3) await picture();
            await tab.evaluate(`notify([${chunk}])`);
        }
        const state = await tab.evaluate(`document.getElementById("status").textContent`);
        assert.ok(!/failed|Check|Cancelled/.test(state), state);
        isDone = state === "Cards are exchanged.";
    }
    const theirs = JSON.parse(new TextDecoder().decode(card));
    assert.equal(theirs.firstName, "Grace");
    assert.equal(theirs.organization, "Eckert–Mauchly Computer Corporation");
    assert.equal(await tab.evaluate(`document.getElementById("name").textContent`), "Ada Lovelace");
    assert.equal(await tab.evaluate(`document.getElementById("contact").textContent`), ada.contact);
    assert.ok(writes.every((write) => write.length <= chunkSize), "a chunk is too large");
    return writes.length;
}

async function run() {
    // First, for the page looks for an adapter when it is loaded.
    const writes = await peripheral();
    const tab = await open(hook);
    await tab.choose();
    await tab.until(`document.readyState === "complete" && document.getElementById("missing").hidden`);
    await tab.picture("light", "light", 1000);
    for (const [framing, size] of [["eom", 20], ["length", 20], ["sequenced", 20], ["length", 182], ["sequenced", 244]]) {
        console.log(`${framing}, chunks of ${size}: cards are exchanged, ${await exchange(tab, writes, framing, size)} writes`);
    }
    await tab.picture("exchanged-light", "light", 1000);
    await tab.picture("exchanged-dark", "dark", 1000);
    await tab.picture("exchanged-narrow", "dark", 360);
    await tab.picture("exchanged-narrow-light", "light", 360);

    const count = await tab.evaluate(`(async () => {
        const { Session } = await import("/ferry/ferry.js");
        const { cases, files, replay } = await import("/tests/vectors.js");
        let count = 0;
        for (const file of files) {
            for (const [, lines] of cases(await (await fetch("/vectors/" + file + ".txt")).text())) count += await replay(Session, lines);
        }
        return count;
    })()`);
    assert.ok(count > 400);
    console.log(`${count} lines of golden vectors hold in the browser`);

    const without = await open("delete Navigator.prototype.bluetooth;");
    await without.until(`!document.getElementById("missing").hidden`);
    assert.equal(await without.evaluate(`document.getElementById("connect").disabled`), true);
    await without.picture("missing-light", "light", 1000);
    await without.picture("missing-narrow", "dark", 360);
}

await main(run);
