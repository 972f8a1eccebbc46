// The page in Chromium, with a peripheral that Chromium emulates: it finds the device, connects, and writes its card in chunks.
// Chromium cannot emulate values that notify, so those are dispatched to the page's own characteristic. The golden vectors hold in
// the browser too. Pictures of the page go to FOLDER.
//
//     node browser.js PACKAGE FOLDER

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createReadStream, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [packageFolder, pictures] = process.argv.slice(2);
const { Session } = await import(pathToFileURL(`${packageFolder}/ferry.js`));
const root = fileURLToPath(new URL("../../..", import.meta.url));
const folders = {
    "/ferry/": packageFolder, "/vectors/": join(root, "Tests/Vectors"), "/tests/": join(root, "Plugins/JavaScript/Tests"),
    "/": join(root, "Examples/WebCard"),
};
const types = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".wasm": "application/wasm", ".txt": "text/plain",
};
const service = "e07f0ae8-00bb-47f5-94f4-4a7174ea3032", characteristic = "9d534e8b-2153-4f6d-b2b0-8c68665a7274";
const address = "09:09:09:09:09:09";

const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    const prefix = Object.keys(folders).find((prefix) => path.startsWith(prefix));
    const file = join(folders[prefix], path.slice(prefix.length) || "index.html");
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

// MARK: DevTools over a pipe: messages of JSON, each ended by a zero byte

const profile = mkdtempSync(join(tmpdir(), "web-card-"));
const chromium = spawn("chromium", [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--enable-features=WebBluetooth",
    "--enable-experimental-web-platform-features", `--user-data-dir=${profile}`, "about:blank",
], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const waiting = new Map(), listeners = new Set();
let last = 0, received = "", status = 0;
chromium.stdio[4].setEncoding("utf8").on("data", (text) => {
    const parts = (received + text).split("\0");
    received = parts.pop();
    for (const part of parts) {
        const message = JSON.parse(part);
        if (message.id === undefined) { for (const listener of listeners) listener(message); continue; }
        const { resolve, reject } = waiting.get(message.id);
        waiting.delete(message.id);
        if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
    }
});
let isClosing = false;
const deadline = setTimeout(() => {
    console.error("browser.js: Chromium did not finish within 120 s.");
    chromium.kill("SIGKILL");
}, 120_000);
const ended = new Promise((resolve) => chromium.on("exit", (code, signal) => {
    clearTimeout(deadline);
    if (!isClosing) {
        console.error(`browser.js: Chromium ended by itself: ${signal ?? code}.`);
        status = 1;
    }
    for (const { reject } of waiting.values()) reject(new Error("Chromium has ended"));
    waiting.clear();
    resolve();
}));

function call(method, params = {}, sessionId = undefined) {
    return new Promise((resolve, reject) => {
        if (chromium.exitCode !== null || chromium.signalCode !== null) return reject(new Error("Chromium has ended"));
        waiting.set(++last, { resolve, reject: (error) => reject(new Error(`${method}: ${error.message}`)) });
        chromium.stdio[3].write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
    });
}

/** A tab at the page, after `script` has run in it. */
async function open(script = "") {
    const { targetId } = await call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
    const page = (method, params) => call(method, params, sessionId);
    await page("Page.enable");
    await page("Runtime.enable");
    await page("Page.addScriptToEvaluateOnNewDocument", { source: script });
    const loaded = new Promise((resolve) => {
        const listener = (message) => {
            if (message.sessionId !== sessionId || message.method !== "Page.loadEventFired") return;
            listeners.delete(listener);
            resolve();
        };
        listeners.add(listener);
    });
    await page("Page.navigate", { url: `${origin}/` });
    await loaded;
    const evaluate = async (expression) => {
        const { result, exceptionDetails } = await page("Runtime.evaluate", {
            expression, awaitPromise: true, returnByValue: true });
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        return result.value;
    };
    // Asked from here, each time anew: a promise in a page that is being left is never fulfilled.
    const until = async (condition) => {
        for (const end = performance.now() + 20_000; performance.now() < end;) {
            if (await evaluate(`Boolean(${condition})`).catch(() => false)) return;
            await new Promise((resolve) => setTimeout(resolve, 10));
        }
        const status = await evaluate(`document.querySelector("main").innerText`).catch(String);
        throw new Error(`not within 20 s: ${condition}. The page says: ${status}`);
    };
    /** A finger's or a mouse's: choosing a device takes a real one. */
    const click = async (id) => {
        const place = await evaluate(`(() => {
            const element = document.getElementById("${id}");
            element.scrollIntoView({ block: "center", behavior: "instant" });
            const { x, y, width, height } = element.getBoundingClientRect();
            return { x: x + width / 2, y: y + height / 2 };
        })()`);
        for (const type of ["mousePressed", "mouseReleased"]) {
            await page("Input.dispatchMouseEvent", { type, ...place, button: "left", clickCount: 1 });
        }
    };
    const picture = async (name, scheme, width) => {
        if (!pictures) return;
        await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
        await page("Emulation.setDeviceMetricsOverride", { width, height: 800, deviceScaleFactor: 1, mobile: width < 500 });
        assert.equal(await evaluate("document.documentElement.scrollWidth <= innerWidth"), true, `${name} is wider than ${width}`);
        const { data } = await page("Page.captureScreenshot", { format: "png", captureBeyondViewport: true });
        writeFileSync(join(pictures, `${name}.png`), Buffer.from(data, "base64"));
    };
    return { sessionId, page, evaluate, until, click, picture };
}

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
    eom: { kind: "end-of-message", chunkSize: 20 }, length: { kind: "length-prefix" }, sequenced: { kind: "sequenced" } };
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
    if (pictures) mkdirSync(pictures, { recursive: true });
    // First, for the page looks for an adapter when it is loaded.
    const writes = await peripheral();
    const tab = await open(hook);
    await tab.page("DeviceAccess.enable");
    // A request is told again for each device that is found, and Chromium ends by a failed check when it is answered twice.
    const answered = new Set();
    listeners.add(({ method, params, sessionId }) => {
        if (method === "DeviceAccess.deviceRequestPrompted" && params.devices.length > 0 && !answered.has(params.id)) {
            answered.add(params.id);
            call("DeviceAccess.selectPrompt", { id: params.id, deviceId: params.devices[0].id }, sessionId).catch(() => {});
        }
    });

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

try {
    await run();
} catch (error) {
    console.error(error);
    status = 1;
}
isClosing = true;
await call("Browser.close").catch(() => {});
await ended;
server.closeAllConnections();
server.close();
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
process.exit(status);
