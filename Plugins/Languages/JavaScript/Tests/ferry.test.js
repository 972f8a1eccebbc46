// node --test, with the package's folder in FERRY_PACKAGE (scripts/far-end javascript).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { cases, files, replay } from "./vectors.js";

const { Session, FerryChannel, FerryError, errors, webBluetoothLink } =
    await import(pathToFileURL(`${process.env.FERRY_PACKAGE}/ferry.js`));
const text = (bytes) => new TextDecoder().decode(bytes);
const pattern = (count) => Uint8Array.from({ length: count }, (_, place) => (place * 7 + 1) & 255);

/** The code of the error that a call throws, 0 for none. */
function code(call) {
    try { call(); return 0; } catch (error) { assert.ok(error instanceof FerryError, error); return error.code; }
}
const rejection = async (promise, expected) => assert.rejects(promise, (error) => error.code === expected);

// MARK: Golden vectors

for (const file of files) {
    const found = cases(readFileSync(new URL(`../../../../Tests/Vectors/${file}.txt`, import.meta.url), "ascii"));
    assert.ok(found.length >= 15);
    for (const [name, lines] of found) test(`${file}: ${name}`, () => replay(Session, lines));
}

// MARK: Bad input

test("arguments out of their range are errors", async () => {
    const wrong = [
        [{ kind: "none" }], [{ kind: "length-prefix", prefix: "8" }], [{ kind: "sequenced", window: 0 }],
        [{ kind: "sequenced", window: 65 }], [{ kind: "sequenced", identifier: -1 }], [{ kind: "sequenced", identifier: 2 ** 32 }],
        ...["jsn", 6, 63, 256, -1].map((codec) => [{ kind: "sequenced", codec }]),
        [{ kind: "end-of-message", marker: new Uint8Array(1) }], [{ kind: "end-of-message", marker: new Uint8Array(21) }],
        [{ kind: "end-of-message", chunkSize: 2 }], [{ kind: "end-of-message", chunkSize: 1.5 }],
        [{ kind: "length-prefix" }, { message: 2 ** 25 }], [{ kind: "length-prefix" }, { message: -1 }],
        [{ kind: "length-prefix" }, { outboundMessages: 0 }], [{ kind: "length-prefix" }, { stallMilliseconds: 0 }],
        [{ kind: "length-prefix" }, { inbound: NaN }],
    ];
    for (const [framing, limits] of wrong) await rejection(Session.create(framing, limits), errors.ARGUMENT);
});

test("a sequenced session tells its codec", async () => {
    for (const [codec, number] of [[undefined, 0], ["json", 3], ["cbor", 5], [64, 64], [255, 255]]) {
        const session = await Session.create({ kind: "sequenced", identifier: 1, codec });
        session.linkOpened(0);
        // Sequenced.md: byte 9 of a hello.
        assert.equal(session.nextChunk(20, 0)[9], number);
    }
});

test("a message far above the limit is refused without memory", async () => {
    const session = await Session.create({ kind: "length-prefix" });
    assert.equal(code(() => session.enqueue(new Uint8Array(100 << 20), 0)), errors.MESSAGE_TOO_LARGE);
    assert.equal(code(() => session.nextChunk(-1, 0)), errors.ARGUMENT);
    for (const now of [NaN, Infinity, 1e300, undefined]) assert.equal(code(() => session.wake(now)), errors.ARGUMENT);
    assert.equal(code(() => session.receive(new Uint8Array(65_536), 0)), errors.ARGUMENT);
    session.linkOpened(0);
    session.enqueue(Uint8Array.of(1), 0);
    assert.deepEqual(session.nextChunk(20, 0), Uint8Array.of(1, 1));
});

test("the largest message survives, and memory is used again", async () => {
    const limits = { message: 1 << 20, outbound: 1 << 20, inbound: 4 << 20 };
    const [a, b] = await Promise.all([Session.create({ kind: "length-prefix" }, limits), Session.create({ kind: "length-prefix" }, limits)]);
    a.linkOpened(0);
    b.linkOpened(0);
    const message = pattern(1 << 20);
    for (let round = 0; round < 40; round++) {
        a.enqueue(message, 0);
        for (let chunk; (chunk = a.nextChunk(50_000, 0));) b.receive(chunk, 0);
        while (a.nextEvent(0));
        assert.deepEqual(b.nextEvent(0).message, message);
        assert.equal(b.nextEvent(0), undefined);
    }
});

test("a trap is an error, and stays one", async () => {
    let traps = false;
    const calls = {
        memory: new WebAssembly.Memory({ initial: 1 }), ferry_allocate: () => 1024, ferry_free() {},
        ferry_create_length_prefix: () => 0,
        ferry_receive() { if (traps) throw new WebAssembly.RuntimeError("unreachable"); return 0; }, ferry_wake: () => 0,
    };
    const session = new Session(calls, { kind: "length-prefix" }, { message: 1, outbound: 1, outboundMessages: 1, inbound: 1, stallMilliseconds: 1 });
    session.receive(Uint8Array.of(1), 0);
    traps = true;
    assert.equal(code(() => session.receive(Uint8Array.of(1), 0)), errors.TRAPPED);
    traps = false;
    assert.equal(code(() => session.wake(0)), errors.TRAPPED);
});

// MARK: Channels

/** Two links in memory; `cut` ends both. */
function pair(chunkSize = 20) {
    const listeners = [undefined, undefined], log = [0, 0];
    const state = { isCut: false, log, hold: undefined };
    const link = (side) => ({
        chunkSize,
        async write(chunk) {
            if (state.isCut) throw new Error("cut");
            if (state.hold) await state.hold;
            log[side]++;
            assert.ok(chunk.length <= chunkSize);
            const copy = chunk.slice();
            queueMicrotask(() => { if (!state.isCut) listeners[1 - side]?.received(copy); });
        },
        async open(listener) { listeners[side] = listener; },
        close() { listeners[side] = undefined; },
    });
    state.cut = () => { state.isCut = true; const both = [...listeners]; for (const listener of both) listener?.closed(); };
    return { a: link(0), b: link(1), state };
}

for (const framing of [{ kind: "end-of-message" }, { kind: "length-prefix" }, { kind: "sequenced" }]) {
    test(`${framing.kind}: messages go both ways, with progress`, async () => {
        const { a, b } = pair();
        const [one, two] = await Promise.all([FerryChannel.create(a, { framing }), FerryChannel.create(b, { framing })]);
        const steps = [];
        const message = pattern(300);
        await Promise.all([
            one.send(message, { onProgress: (accepted, total) => steps.push([accepted, total]) }),
            two.send("grüezi"),
            two.receive().then((received) => assert.deepEqual(received, message)),
            one.receive().then((received) => assert.equal(text(received), "grüezi")),
        ]);
        assert.ok(steps.length > 1);
        assert.deepEqual(steps.at(-1), [300, 300]);
        assert.ok(steps.every(([accepted], place) => place === 0 || accepted > steps[place - 1][0]));
        one.close();
        two.close();
        assert.equal((await one.closed).code, errors.ORDER);
    });
}

test("messages can be iterated over until the channel is closed", async () => {
    const { a, b, state } = pair();
    const [one, two] = await Promise.all([FerryChannel.create(a), FerryChannel.create(b)]);
    for (const word of ["one", "two", "three"]) await one.send(word);
    await new Promise((resolve) => setImmediate(resolve));
    state.cut();
    const words = [];
    for await (const message of two) words.push(text(message));
    assert.deepEqual(words, ["one", "two", "three"]);
    await rejection(one.send("four"), errors.ORDER);
});

test("a message that waits is taken back", async () => {
    const { a, b, state } = pair();
    const [one, two] = await Promise.all([FerryChannel.create(a), FerryChannel.create(b)]);
    let release;
    state.hold = new Promise((resolve) => { release = resolve; });
    const first = one.send(pattern(40));
    const abort = new AbortController();
    const second = one.send("never", { signal: abort.signal });
    abort.abort(new Error("changed my mind"));
    await assert.rejects(second, /changed my mind/);
    release();
    await first;
    await one.send("last");
    assert.equal((await two.receive()).length, 40);
    assert.equal(text(await two.receive()), "last");
    await assert.rejects(one.send("late", { signal: abort.signal }), /changed my mind/);
});

test("limits are errors, and the channel goes on", async () => {
    const { a, b, state } = pair();
    const [one, two] = await Promise.all([FerryChannel.create(a, { limits: { message: 100, outboundMessages: 2 } }), FerryChannel.create(b)]);
    await rejection(one.send(pattern(101)), errors.MESSAGE_TOO_LARGE);
    let release;
    state.hold = new Promise((resolve) => { release = resolve; });
    const sent = [one.send("1"), one.send("2")];
    await rejection(one.send("3"), errors.FULL);
    release();
    await Promise.all(sent);
    await one.send("4");
    for (const word of ["1", "2", "4"]) assert.equal(text(await two.receive()), word);
});

test("a peer that is not read ends a simple channel, with what had arrived", async () => {
    const { a, b } = pair();
    const [one, two] = await Promise.all([FerryChannel.create(a), FerryChannel.create(b, { limits: { inbound: 500 } })]);
    for (let count = 0; count < 40; count++) await one.send(pattern(60)).catch(() => {});
    assert.equal((await two.closed).code, errors.FULL);
    let received = 0;
    await assert.rejects(async () => { for await (const message of two) received += message.length; }, (error) => error.code === errors.FULL);
    assert.ok(received > 0 && received < 2400);
});

test("a peer that is not read is stopped by the sequenced framing", async () => {
    const { a, b, state } = pair(64);
    const framing = { kind: "sequenced" };
    const [one, two] = await Promise.all([
        FerryChannel.create(a, { framing, limits: { outbound: 20_000, outboundMessages: 50 } }),
        FerryChannel.create(b, { framing, limits: { inbound: 1000 } })]);
    const sends = Array.from({ length: 50 }, (_, count) => one.send(pattern(200 + count)));
    for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(state.log[0] > 5 && state.log[0] < 60, `${state.log[0]} chunks have left, of 170 and more`);
    const sizes = [];
    while (sizes.length < 50) sizes.push((await two.receive()).length);
    // Messages arrive in the order of their completion.
    assert.deepEqual(sizes.sort(), Array.from({ length: 50 }, (_, count) => 200 + count));
    await Promise.all(sends);
    one.close();
    two.close();
});

test("a sequenced channel goes on over the next link", async () => {
    const framing = { kind: "sequenced" }, first = pair();
    const [one, two] = await Promise.all([FerryChannel.create(first.a, { framing }), FerryChannel.create(first.b, { framing })]);
    await one.send("before");
    const sending = one.send(pattern(2000), { onProgress: (accepted) => { if (accepted > 500) first.state.cut(); } });
    assert.equal(text(await two.receive()), "before");
    while (!first.state.isCut) await new Promise((resolve) => setImmediate(resolve));
    const second = pair(64);
    await Promise.all([one.resume(second.a), two.resume(second.b)]);
    assert.deepEqual(await two.receive(), pattern(2000));
    await sending;
    one.close();
    two.close();
});

test("a stream that is none ends the channel with its error", async () => {
    const { a, b } = pair();
    let listener;
    await a.open({ received() {}, closed() {} });
    const channel = await FerryChannel.create({ ...b, open: async (given) => { listener = given; } });
    const reading = channel.receive();
    listener.received(Uint8Array.of(0x80, 0x00));
    await rejection(reading, errors.MALFORMED_STREAM);
    listener.received(Uint8Array.of(1));
    await rejection(channel.send("late"), errors.MALFORMED_STREAM);
});

test("a write that fails ends a simple channel", async () => {
    const link = { chunkSize: 20, write: async () => { throw new Error("out of range"); }, async open() {}, close() {} };
    const channel = await FerryChannel.create(link);
    await rejection(channel.send("x"), errors.LINK);
    assert.match((await channel.closed).cause.message, /out of range/);
});

// MARK: Web Bluetooth

class Characteristic extends EventTarget {
    writes = [];
    isNotifying = false;
    constructor(device, properties) { super(); this.service = { device }; this.properties = properties; }
    async startNotifications() { this.isNotifying = true; return this; }
    async stopNotifications() { this.isNotifying = false; return this; }
    async writeValueWithoutResponse(value) { this.writes.push(["without", Uint8Array.from(value)]); }
    async writeValueWithResponse(value) { this.writes.push(["with", Uint8Array.from(value)]); }
    notify(bytes) {
        this.value = new DataView(Uint8Array.of(9, ...bytes).buffer, 1);
        this.dispatchEvent(new Event("characteristicvaluechanged"));
    }
}

test("a characteristic of Web Bluetooth is a link", async () => {
    const device = new EventTarget();
    device.gatt = { connected: true };
    const write = new Characteristic(device, { writeWithoutResponse: true }), notify = new Characteristic(device, { notify: true });
    const channel = await FerryChannel.overCharacteristics({ write, notify }, { chunkSize: 4 });
    assert.ok(notify.isNotifying);
    await channel.send(Uint8Array.of(1, 2, 3, 4, 5));
    assert.deepEqual(write.writes, [["without", Uint8Array.of(5, 1, 2, 3)], ["without", Uint8Array.of(4, 5)]]);
    notify.notify([2, 7, 8]);
    assert.deepEqual(await channel.receive(), Uint8Array.of(7, 8));
    device.dispatchEvent(new Event("gattserverdisconnected"));
    assert.equal((await channel.closed).code, errors.ORDER);
});

test("writes are acknowledged where the characteristic asks for it", async () => {
    const device = new EventTarget();
    device.gatt = { connected: true };
    const write = new Characteristic(device, { writeWithoutResponse: false, write: true });
    const link = await webBluetoothLink({ write });
    await link.open({ received() {}, closed() {} });
    await link.write(Uint8Array.of(1));
    assert.deepEqual(write.writes, [["with", Uint8Array.of(1)]]);
    link.close();
    await Promise.resolve();
    assert.equal(write.isNotifying, false);
});
