// The golden vectors of Tests/Vectors (its README has the format), for Node and for a browser.

const data = (word) => word === "-" ? new Uint8Array() : Uint8Array.from(word.match(/../g), (digits) => parseInt(digits, 16));
const hex = (bytes) => bytes === undefined ? "none" : Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") || "-";

export const files = ["framing-eom", "framing-length", "framing-sequenced", "exchanges-sequenced"];

/** Each case of a file as its name and its lines, a line as its words. */
export function cases(text) {
    const found = [];
    for (const line of text.split("\n")) {
        const words = line.trim().split(" ");
        if (words[0] === "" || words[0].startsWith("#")) continue;
        if (words[0] === "case") found.push([line.slice(5), []]); else found.at(-1)[1].push(words);
    }
    return found;
}

/** The code of the error that a call throws, 0 for none. */
function code(call) {
    try {
        call();
        return 0;
    } catch (error) {
        if (typeof error.code !== "number") throw error;
        return error.code;
    }
}

function framing([kind, ...words], side) {
    switch (kind) {
        case "eom": return { kind: "end-of-message", marker: data(words[0]), chunkSize: Number(words[1]) };
        case "length": return { kind: "length-prefix", prefix: words[0] };
        case "sequenced": return { kind: "sequenced", window: Number(words[0]), identifier: parseInt(words[1 + side], 16) };
        default: throw new Error(`no framing: ${kind}`);
    }
}

/** Does a case's lines to two sessions. Throws at the first that does not hold; returns how many there were. */
export async function replay(Session, lines) {
    let sides = [], limits = {}, size = 20, now = 0n, line;
    const event = (session) => {
        let event;
        do event = session.nextEvent(now); while (event?.kind === "progress" || event?.kind === "sent");
        return event;
    };
    const hold = (found, expected) => {
        if (found !== expected) throw new Error(`${line.join(" ")}: ${found}`);
    };
    for (line of lines) {
        const [first, verb, ...rest] = line;
        if (first === "limits") limits = { message: Number(verb), inbound: Number(rest[0]) };
        else if (first === "link") size = Number(verb);
        else if (first === "time") now = BigInt(verb);
        else if (first === "framing") {
            sides = await Promise.all([0, 1].map((side) => Session.create(framing(line.slice(1), side), limits)));
            for (const session of sides) session.linkOpened(0n);
        } else {
            const side = first === "a" ? 0 : 1, session = sides[side];
            const status = (index) => Number(rest[index] ?? 0);
            if (verb === "send") hold(code(() => session.enqueue(data(rest[0]), now)), status(1));
            else if (verb === "chunk" || verb === "lost") {
                const chunk = session.nextChunk(size, now);
                hold(hex(chunk), rest[0]);
                if (verb === "chunk") hold(code(() => sides[1 - side].receive(chunk, now)), status(1));
            } else if (verb === "idle") hold(code(() => hold(hex(session.nextChunk(size, now)), "none")), status(0));
            else if (verb === "take") hold(code(() => session.receive(data(rest[0]), now)), status(1));
            else if (verb === "message") hold(hex(event(session)?.message), rest[0]);
            else if (verb === "failed") {
                const failed = event(session);
                hold(`${failed?.number} ${failed?.error?.code}`, rest.join(" "));
            } else if (verb === "dropped") hold(event(session)?.error?.code, status(0));
            else if (verb === "nothing") hold(event(session)?.kind, undefined);
            else if (verb === "cancel") hold(session.cancel(BigInt(rest[0]), now), rest[1] === "taken");
            else if (verb === "wake") hold(code(() => session.wake(now)), status(0));
            else if (verb === "open") hold(code(() => session.linkOpened(now)), status(0));
            else if (verb === "close") hold(code(() => session.linkClosed(now)), status(0));
            else throw new Error(`an unknown line: ${line.join(" ")}`);
        }
    }
    return lines.length;
}
