// The page in Chromium with what the machine's bluetoothd hears: cards are exchanged with a real `business-card serve`, which
// notifies its own. Tests/VirtualMachine/far-end.sh runs it.
//
//     node bluez.js PACKAGE FOLDER

import assert from "node:assert/strict";
import { listeners, main, open, patience } from "./chromium.js";

await main(async () => {
    // The page's own deadlines are for a machine that is not emulated.
    const tab = await open(`{
        const set = setTimeout;
        globalThis.setTimeout = (call, delay, ...rest) => set(call, delay * ${patience}, ...rest);
    }`);
    await tab.until(`document.readyState === "complete" && document.getElementById("missing").hidden`);
    await tab.choose();
    listeners.add(({ method, params }) => {
        if (method !== "Runtime.consoleAPICalled") return;
        console.log(...params.args.map(({ description, value }) => description ?? value));
    });
    // A click lets a page ask for a device for five seconds, and an emulated processor may take longer to come to it.
    for (let attempt = 0; attempt < 3; attempt++) {
        await tab.click("connect");
        await tab.until(`document.getElementById("status").textContent === "Cards are exchanged."
            || document.getElementById("state").classList.contains("failed")`);
        if (!await tab.evaluate(`document.getElementById("state").classList.contains("failed")`)) break;
    }
    assert.equal(await tab.evaluate(`document.getElementById("status").textContent`), "Cards are exchanged.");
    const received = await tab.evaluate(`document.getElementById("card").innerText`);
    console.log(`the page has a card: ${received.replaceAll(/\s+/g, " ")}`);
    console.log(`the page says: ${await tab.evaluate(`document.getElementById("figures").textContent`)}`);
    await tab.picture("bluez", "light", 1000);
});
