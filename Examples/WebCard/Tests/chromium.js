// The page in Chromium, driven by its DevTools protocol.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createReadStream, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const [packageFolder, pictures] = process.argv.slice(2);
if (pictures) mkdirSync(pictures, { recursive: true });
/** How many times slower than a machine of its own this one is. */
export const patience = Number(process.env.FERRY_PATIENCE ?? 1);
export const root = fileURLToPath(new URL("../../..", import.meta.url));
const folders = {
    "/ferry/": packageFolder, "/vectors/": join(root, "Tests/Vectors"), "/tests/": join(root, "Plugins/Languages/JavaScript/Tests"),
    "/": join(root, "Examples/WebCard"),
};
const types = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".wasm": "application/wasm", ".txt": "text/plain",
};
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
    "--enable-experimental-web-platform-features", "--no-first-run", "--disable-extensions", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", `--user-data-dir=${profile}`, "about:blank",
], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const waiting = new Map();
/** Functions that take each event. */
export const listeners = new Set();
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
    console.error(`Chromium did not finish within ${120 * patience} s.`);
    chromium.kill("SIGKILL");
}, 120_000 * patience);
const ended = new Promise((resolve) => chromium.on("exit", (code, signal) => {
    clearTimeout(deadline);
    if (!isClosing) {
        console.error(`Chromium ended by itself: ${signal ?? code}.`);
        status = 1;
    }
    for (const { reject } of waiting.values()) reject(new Error("Chromium has ended"));
    waiting.clear();
    resolve();
}));

export function call(method, params = {}, sessionId = undefined) {
    return new Promise((resolve, reject) => {
        if (chromium.exitCode !== null || chromium.signalCode !== null) return reject(new Error("Chromium has ended"));
        waiting.set(++last, { resolve, reject: (error) => reject(new Error(`${method}: ${error.message}`)) });
        chromium.stdio[3].write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
    });
}

/** A tab at the page, after `script` has run in it. */
export async function open(script = "") {
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
        for (const end = performance.now() + 20_000 * patience; performance.now() < end;) {
            if (await evaluate(`Boolean(${condition})`).catch(() => false)) return;
            await new Promise((resolve) => setTimeout(resolve, 10));
        }
        const status = await evaluate(`document.querySelector("main").innerText`).catch(String);
        throw new Error(`not within ${20 * patience} s: ${condition}. The page says: ${status}`);
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
    /** Chooses the first device of each request. */
    const choose = async () => {
        await page("DeviceAccess.enable");
        // A request is told again for each device that is found, and Chromium ends by a failed check when it is answered twice.
        const answered = new Set();
        listeners.add(({ method, params }) => {
            if (method === "DeviceAccess.deviceRequestPrompted" && params.devices.length > 0 && !answered.has(params.id)) {
                answered.add(params.id);
                page("DeviceAccess.selectPrompt", { id: params.id, deviceId: params.devices[0].id }).catch(() => {});
            }
        });
    };
    return { page, evaluate, until, click, choose, picture };
}

/** Runs a test, ends Chromium, and exits. */
export async function main(test) {
    try {
        await test();
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
}
