// Random schedules, and the fuzzer's corpus, in WebAssembly: prints a digest for every 50 of them. transcript.py prints the same of
// the C library, so that both can be compared. Both files do the same in the same order.
//
//     node transcript.js PACKAGE schedules COUNT      or      corpus FOLDER

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Session, FerryError } = await import(pathToFileURL(`${process.argv[2]}/ferry.js`));
const limits = { message: 900, outbound: 2000, outboundMessages: 6, inbound: 4096, stallMilliseconds: 5000 };
const hex = (bytes) => Buffer.from(bytes).toString("hex");

class Random {
    constructor(seed) { this.state = ((Math.imul(seed, 2654435761) >>> 0) + 1) >>> 0 || 1; }
    below(bound) {
        let x = this.state;
        x ^= x << 13; x ^= x >>> 17; x ^= x << 5;
        this.state = x >>> 0;
        return this.state % bound;
    }
    bytes(count) { return Uint8Array.from({ length: count }, () => this.below(256)); }
}

const make = (framing, identifier) => Session.create([
    { kind: "end-of-message" }, { kind: "length-prefix" }, { kind: "length-prefix", prefix: "16-little" },
    { kind: "sequenced", identifier, window: 8 },
][framing], limits);

/** What a call returns, in words. */
function answer(call) {
    try {
        const result = call();
        if (result === undefined) return "-";
        return result instanceof Uint8Array ? hex(result) : String(result === true ? 1 : result === false ? 0 : result);
    } catch (error) {
        if (!(error instanceof FerryError)) throw error;
        return `error ${error.code}`;
    }
}

function events(session, now) {
    const words = [];
    for (let event; (event = session.nextEvent(now));) {
        if (event.kind === "received") words.push(`received ${hex(event.message)}`);
        else if (event.kind === "progress") words.push(`progress ${event.number} ${event.count}`);
        else if (event.kind === "sent") words.push(`sent ${event.number}`);
        else if (event.kind === "failed") words.push(`failed ${event.number} ${event.error.code}`);
        else words.push(`dropped ${event.error.code}`);
    }
    return words.join(", ");
}

function deadline(session) {
    const text = answer(() => session.deadline());
    return text.startsWith("error") || text === "-" ? text : String(Math.round(Number(text) * 1e6));
}

async function schedule(seed, say) {
    const random = new Random(seed), framing = seed % 4;
    const sessions = [await make(framing, 7), await make(framing, 8)], wires = [[], []];
    const isDamaging = random.below(100) < 30;
    let now = 1000n;
    for (const session of sessions) if (random.below(100) < 95) session.linkOpened(now);
    for (let step = 0; step < 120; step++) {
        const side = random.below(2), session = sessions[side], choice = random.below(40);
        if (choice < 6) {
            const count = random.below(20) === 0 ? 800 + random.below(200) : random.below(random.below(3) === 0 ? 400 : 30);
            const message = random.bytes(count);
            say(`enqueue ${answer(() => session.enqueue(message, now))}`);
        } else if (choice === 6) {
            const number = random.below(8);
            say(`cancel ${answer(() => session.cancel(number, now))}`);
        } else if (choice === 7 && random.below(5) === 0) {
            say(`close ${answer(() => session.linkClosed(now))}`);
        } else if (choice === 8) {
            say(`open ${answer(() => session.linkOpened(now))}`);
        } else if (choice >= 9 && choice < 12) {
            now += BigInt(random.below(random.below(10) === 0 ? 6000 : 200)) * 1_000_000n;
            say(`wake ${answer(() => session.wake(now))}`);
        } else if (choice >= 12 && choice < 16) {
            say(`events ${events(session, now)}`);
        } else if (choice >= 16 && choice < 28) {
            const size = random.below(33) === 0 ? random.below(20) : 20 + random.below(60);
            const chunk = answer(() => session.nextChunk(size, now));
            say(`chunk ${chunk}`);
            if (/^[0-9a-f]+$/.test(chunk)) wires[1 - side].push(Uint8Array.from(Buffer.from(chunk, "hex")));
        } else if (wires[side].length > 0) {
            let chunk = wires[side].shift();
            if (isDamaging && random.below(10) === 0) {
                const way = random.below(4);
                if (way === 0) continue;
                if (way === 1) chunk = chunk.subarray(0, random.below(chunk.length + 1));
                else if (way === 2 && chunk.length > 0) { const place = random.below(chunk.length); chunk[place] = random.below(256); }
                else wires[side].push(chunk.slice());
            }
            say(`receive ${answer(() => session.receive(chunk, now))}`);
        }
        say(`deadline ${deadline(session)}`);
    }
}

/** An input of the fuzzer, to a session of each framing; FuzzSequenced.swift has the meaning of the steps. */
async function play(input, say) {
    const sizes = [20, 21, 23, 64, 182, 244, 512, 40_000];
    for (let framing = 0; framing < 4; framing++) {
        const session = await make(framing, 7);
        let now = 0n, size = 20, place = 0;
        session.linkOpened(now);
        while (place < input.length) {
            const step = input[place++];
            if (step < 128) {
                const chunk = input.subarray(place, place + step);
                place += step;
                say(`receive ${answer(() => session.receive(chunk, now))}`);
            } else if (step < 160) {
                const message = new Uint8Array((step - 128) * 37).fill(step);
                say(`enqueue ${answer(() => session.enqueue(message, now))}`);
            } else if (step < 192) {
                say(`events ${events(session, now)}`);
            } else if (step < 208) {
                const at = deadline(session);
                if (/^\d+$/.test(at)) now = BigInt(at) > now ? BigInt(at) : now;
                say(`wake ${answer(() => session.wake(now))}`);
            } else if (step < 224) {
                say(`cancel ${answer(() => session.cancel(step - 208, now))}`);
            } else if (step < 240) {
                for (let count = step - 224; count >= 0; count--) say(`chunk ${answer(() => session.nextChunk(size, now))}`);
            } else if (step < 248) {
                say(`close ${answer(() => session.linkClosed(now))}`);
                say(`open ${answer(() => session.linkOpened(now))}`);
            } else {
                size = sizes[step - 248];
            }
            say(`deadline ${deadline(session)}`);
        }
        say(`events ${events(session, now)}`);
    }
}

let hash = createHash("sha256"), count = 0;
const say = (line) => {
    hash.update(`${line}\n`);
    if (process.env.FERRY_SHOW === String(count)) console.error(line);
};
function tell(isLast) {
    if (!isLast && count % 50 !== 0) return;
    console.log(`${count} ${hash.digest("hex").slice(0, 16)}`);
    hash = createHash("sha256");
}
if (process.argv[3] === "schedules") {
    while (count < Number(process.argv[4])) { await schedule(count, say); count++; tell(false); }
} else {
    for (const name of readdirSync(process.argv[4]).sort()) {
        await play(new Uint8Array(readFileSync(`${process.argv[4]}/${name}`)), say);
        count++;
        tell(false);
    }
}
tell(true);
