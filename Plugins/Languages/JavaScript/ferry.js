// Ferry's framings in JavaScript: ferry.h as WebAssembly, and a channel of messages over a Web Bluetooth characteristic.
// ferry.d.ts documents each name.

const OK = 0, NOTHING = 1, BUFFER = -2, TRAPPED = -64;

export const errors = Object.freeze({
    ARGUMENT: -1, BUFFER: -2, ORDER: -3, FULL: -4, MESSAGE_TOO_LARGE: -16, NOT_TEXT: -17, CHUNK_SIZE_TOO_SMALL: -18,
    MALFORMED_STREAM: -19, INCOMPATIBLE_PEER: -20, PEER_LOST_STATE: -21, TRUNCATED: -22, TIMED_OUT: -23,
    CANCELLED_BY_PEER: -24, CONFIGURATION: -25, OTHER: -63, TRAPPED, LINK: -65,
});

// What an error is, and what to do.
const texts = new Map([
    [-1, "An argument is out of its range."],
    [-2, "The link takes fewer bytes at once than this framing needs. Raise chunkSize."],
    [-3, "There is no link now, or there was one already."],
    [-4, "A limit is reached. Wait until messages are sent, or read those that have arrived."],
    [-16, "A message is larger than limits.message. Raise it on both sides, or send less at once."],
    [-17, "The message is no text."],
    [-18, "The link's chunks are too small for this framing."],
    [-19, "The peer's bytes are no stream of this framing. Use the same framing on both sides."],
    [-20, "The peer uses another version, codec or compression. Use the same on both sides."],
    [-21, "The peer has lost its state. It may have received the message, or not."],
    [-22, "The link ended, or fell silent, in the middle of a message."],
    [-23, "The peer does not answer."],
    [-24, "The peer cancelled a message that had arrived in part."],
    [-25, "The configuration is out of its range."],
    [-64, "The framing trapped. This is a defect of Ferry; please report it with the bytes that arrived."],
    [-65, "The link refused a chunk or could not be opened."],
]);

export class FerryError extends Error {
    constructor(code, cause) {
        super(`${texts.get(code) ?? "The session failed."} [${code}]`, cause === undefined ? undefined : { cause });
        this.name = "FerryError";
        this.code = code;
    }
}

// MARK: Loading

let compiled;

/** Compiles ferry.wasm once; each session has an instance of its own, so that none can harm another. */
function load() {
    compiled ??= (async () => {
        const url = new URL("./ferry.wasm", import.meta.url);
        if (url.protocol === "file:") {
            const { readFile } = await import("node:fs/promises");
            return WebAssembly.compile(await readFile(url));
        }
        const response = await fetch(url);
        if (!response.ok) throw new FerryError(errors.OTHER, new Error(`${url}: ${response.status}`));
        return WebAssembly.compile(await response.arrayBuffer());
    })();
    // A failed download is tried again by the next session.
    compiled.catch(() => { compiled = undefined; });
    return compiled;
}

// MARK: Sessions

const prefixes = ["varint", "16-big", "16-little", "32-big", "32-little"];
const codecs = ["untold", "bytes", "text", "json", "property-list", "cbor"];
export const defaultLimits = Object.freeze({
    message: 4096, outbound: 8192, outboundMessages: 16, inbound: 8192, stallMilliseconds: 60_000,
});

const isUnsigned = (number) => Number.isInteger(number) && number >= 0 && number <= 0xFFFF_FFFF;

export class Session {
    #calls; #memory; #session = 0; #buffer = 0; #capacity = 0; #small; #ended;

    static async create(framing, limits = {}) {
        const instance = await WebAssembly.instantiate(await load(), {});
        return new Session(instance.exports, framing, { ...defaultLimits, ...limits });
    }

    /** Use `create`. */
    constructor(calls, framing, limits) {
        this.#calls = calls;
        this.#memory = calls.memory;
        this.limits = limits;
        this.survivesLinkLoss = framing.kind === "sequenced";
        // The places of limits, events and results: 24, 24 and 8 bytes.
        this.#small = calls.ferry_allocate(64);
        this.#reserve(512);
        this.#writeLimits(limits);
        const place = this.#small + 48;
        const { kind } = framing;
        let status;
        if (kind === "end-of-message") {
            const marker = framing.marker ?? new Uint8Array([0x45, 0x4F, 0x4D]);
            const chunk = framing.chunkSize ?? 0;
            if (!isUnsigned(chunk)) throw new FerryError(errors.ARGUMENT);
            status = this.#call("ferry_create_end_of_message", this.#small, this.#put(marker), marker.length, chunk, place);
        } else if (kind === "length-prefix") {
            const prefix = prefixes.indexOf(framing.prefix ?? "varint");
            status = this.#call("ferry_create_length_prefix", this.#small, prefix, place);
        } else if (kind === "sequenced") {
            const identifier = framing.identifier ?? crypto.getRandomValues(new Uint32Array(1))[0];
            const window = framing.window ?? 32;
            const name = framing.codec ?? "untold";
            const codec = typeof name === "number" ? name : codecs.indexOf(name);
            if (![identifier, window, codec].every(isUnsigned)) throw new FerryError(errors.ARGUMENT);
            status = this.#call("ferry_create_sequenced_for", this.#small, identifier, window, codec, place);
        } else {
            status = errors.ARGUMENT;
        }
        this.#check(status);
        this.#session = this.#view().getUint32(place, true);
    }

    linkOpened(now) { this.#check(this.#call("ferry_link_opened", this.#session, time(now))); }
    linkClosed(now) { this.#check(this.#call("ferry_link_closed", this.#session, time(now))); }

    enqueue(message, now) {
        // One that is too large is not even read: the library looks at its size first.
        const place = message.length > this.limits.message ? this.#buffer : this.#put(message);
        const number = this.#small + 48;
        this.#check(this.#call("ferry_enqueue", this.#session, place, message.length, number, time(now)));
        return this.#view().getBigUint64(number, true);
    }

    cancel(number, now) {
        return this.#check(this.#call("ferry_cancel", this.#session, BigInt(number), time(now))) !== NOTHING;
    }

    nextChunk(capacity, now) {
        if (!isUnsigned(capacity)) throw new FerryError(errors.ARGUMENT);
        const size = Math.min(capacity, 65_535);
        this.#reserve(size);
        const count = this.#small + 48;
        const status = this.#call("ferry_next_chunk", this.#session, this.#buffer, size, count, time(now));
        if (this.#check(status) === NOTHING) return undefined;
        return this.#take(this.#view().getUint32(count, true));
    }

    receive(chunk, now) {
        if (chunk.length > 65_535) throw new FerryError(errors.ARGUMENT);
        this.#check(this.#call("ferry_receive", this.#session, this.#put(chunk), chunk.length, time(now)));
    }

    nextEvent(now) {
        const event = this.#small + 24;
        let status;
        do {
            status = this.#call("ferry_next_event", this.#session, event, this.#buffer, this.#capacity, time(now));
            if (status === BUFFER) this.#reserve(this.#view().getUint32(event + 16, true));
        } while (status === BUFFER);
        if (this.#check(status) === NOTHING) return undefined;
        const view = this.#view();
        const number = view.getBigUint64(event + 8, true), count = view.getUint32(event + 16, true);
        const error = view.getInt32(event + 4, true);
        switch (view.getInt32(event, true)) {
            case 1: return { kind: "received", message: this.#take(count) };
            case 2: return { kind: "progress", number, count };
            case 3: return { kind: "sent", number };
            case 4: return { kind: "failed", number, error: new FerryError(error) };
            default: return { kind: "receive-failed", error: new FerryError(error) };
        }
    }

    deadline() {
        const at = this.#small + 48;
        if (this.#check(this.#call("ferry_deadline", this.#session, at)) === NOTHING) return undefined;
        return Number(this.#view().getBigInt64(at, true)) / 1e6;
    }

    wake(now) { this.#check(this.#call("ferry_wake", this.#session, time(now))); }

    #writeLimits(limits) {
        const numbers = [limits.message, limits.outbound, limits.outboundMessages, limits.inbound];
        const stall = limits.stallMilliseconds;
        if (!numbers.every(isUnsigned) || !(stall > 0 && stall < 9e12)) throw new FerryError(errors.ARGUMENT);
        const view = this.#view();
        numbers.forEach((number, index) => view.setUint32(this.#small + 4 * index, number, true));
        view.setBigInt64(this.#small + 16, time(stall), true);
    }

    /** Calls the library. What traps ends the session, and this instance with it. */
    #call(name, ...values) {
        if (this.#ended) throw this.#ended;
        try {
            return this.#calls[name](...values);
        } catch (trap) {
            if (!(trap instanceof WebAssembly.RuntimeError) && !(trap instanceof RangeError)) throw trap;
            this.#ended = new FerryError(TRAPPED, trap);
            throw this.#ended;
        }
    }

    #check(status) {
        if (status < OK) throw new FerryError(status);
        return status;
    }

    #reserve(count) {
        if (count <= this.#capacity) return;
        if (this.#buffer) this.#call("ferry_free", this.#buffer);
        this.#capacity = 0;
        this.#buffer = this.#call("ferry_allocate", count);
        if (!this.#buffer) throw this.#ended = new FerryError(errors.OTHER, new Error("The memory is exhausted."));
        this.#capacity = count;
    }

    // Memory that grows detaches the views of before.
    #view() { return new DataView(this.#memory.buffer); }

    #put(bytes) {
        this.#reserve(bytes.length);
        new Uint8Array(this.#memory.buffer, this.#buffer, bytes.length).set(bytes);
        return this.#buffer;
    }

    #take(count) { return new Uint8Array(this.#memory.buffer, this.#buffer, count).slice(); }
}

/** Nanoseconds of milliseconds. Nanoseconds may be given as a BigInt. */
function time(milliseconds) {
    if (typeof milliseconds === "bigint") return milliseconds;
    if (!(Math.abs(milliseconds) < 9e12)) throw new FerryError(errors.ARGUMENT);
    return BigInt(Math.round(milliseconds * 1e6));
}

// MARK: Channels

// What a message that waits to be read counts besides its bytes.
const messageCost = 64;
const now = () => performance.now();

export class FerryChannel {
    #session; #link; #opening; #error; #timer; #isPumping = false; #isMoved = false;
    #pending = new Map(); #outcomes = []; #messages = []; #unread = 0; #readers = []; #closed; #tellClosed;

    static async create(link, options = {}) {
        const session = await Session.create(options.framing ?? { kind: "length-prefix" }, options.limits);
        const channel = new FerryChannel(session);
        await channel.#open(link);
        return channel;
    }

    static async overCharacteristics(characteristics, options = {}) {
        return FerryChannel.create(await webBluetoothLink(characteristics, options), options);
    }

    /** Use `create` or `overCharacteristics`. */
    constructor(session) {
        this.#session = session;
        this.#closed = new Promise((resolve) => { this.#tellClosed = resolve; });
    }

    get closed() { return this.#closed; }
    get limits() { return this.#session.limits; }

    async send(message, { signal, onProgress } = {}) {
        signal?.throwIfAborted();
        if (this.#error) throw this.#error;
        const bytes = typeof message === "string" ? new TextEncoder().encode(message) : message;
        const number = this.#session.enqueue(bytes, now());
        const sent = new Promise((resolve, reject) => {
            this.#pending.set(number, { resolve, reject, onProgress, total: bytes.length });
        });
        const abort = () => {
            const pending = this.#pending.get(number);
            if (!pending) return;
            this.#pending.delete(number);
            try {
                this.#session.cancel(number, now());
            } catch { /* The session has ended, which `closed` tells. */ }
            pending.reject(signal.reason);
            this.#pump();
        };
        signal?.addEventListener("abort", abort, { once: true });
        this.#pump();
        try {
            await sent;
        } finally {
            signal?.removeEventListener("abort", abort);
        }
    }

    async receive() {
        if (this.#messages.length === 0) {
            if (this.#error) throw this.#error;
            await new Promise((resolve) => this.#readers.push(resolve));
            return this.receive();
        }
        const message = this.#messages.shift();
        this.#unread -= message.length + messageCost;
        if (!this.#error) {
            this.#fetch();
            this.#pump();
        }
        return message;
    }

    async *[Symbol.asyncIterator]() {
        while (true) {
            try {
                yield await this.receive();
            } catch (error) {
                if (error.code === errors.ORDER) return;
                throw error;
            }
        }
    }

    async resume(link) {
        if (this.#error) throw this.#error;
        this.#lose(this.#link);
        await this.#open(link);
    }

    close() { this.#end(new FerryError(errors.ORDER)); }

    async #open(link) {
        this.#opening = link;
        try {
            // First, so that what arrives while notifications are being switched on finds an open session.
            this.#session.linkOpened(now());
            await link.open({
                received: (chunk) => { if (this.#link === link || this.#opening === link) this.#received(chunk); },
                closed: () => this.#lose(link),
            });
        } catch (cause) {
            const error = cause instanceof FerryError ? cause : new FerryError(errors.LINK, cause);
            if (this.#session.survivesLinkLoss) this.#lose(link); else this.#end(error);
            throw error;
        }
        // It may have been lost again.
        if (this.#opening !== link) return;
        this.#opening = undefined;
        this.#link = link;
        this.#pump();
    }

    #received(chunk) {
        if (this.#error) return;
        try {
            this.#session.receive(chunk, now());
        } catch (error) {
            // The sequenced framing's peer sends again what is dropped.
            if (error.code !== errors.FULL || !this.#session.survivesLinkLoss) return this.#fail(error);
        }
        this.#fetch();
        this.#pump();
    }

    /** The link has ended. A sequenced session waits for `resume`. */
    #lose(link) {
        if (this.#error || !link || (this.#link !== link && this.#opening !== link)) return;
        this.#link = this.#opening = undefined;
        clearTimeout(this.#timer);
        link.close();
        try {
            this.#session.linkClosed(now());
            if (!this.#session.survivesLinkLoss) this.#end(new FerryError(errors.ORDER));
        } catch (error) {
            this.#end(error);
        }
    }

    /** After a timeout a sequenced session goes on over the next link; any other error is the end. */
    #fail(error) {
        if (error.code === errors.TIMED_OUT && this.#session.survivesLinkLoss && this.#link) {
            const link = this.#link;
            this.#link = undefined;
            clearTimeout(this.#timer);
            link.close();
            return;
        }
        this.#end(error);
    }

    #end(error) {
        if (this.#error) return;
        clearTimeout(this.#timer);
        // What arrived before the end is read.
        try { this.#fetch(); } catch { /* The error that ended it is told. */ }
        this.#error = error;
        (this.#link ?? this.#opening)?.close();
        this.#link = this.#opening = undefined;
        for (const { reject } of this.#pending.values()) reject(error);
        this.#pending.clear();
        this.#wakeReaders();
        this.#tellClosed(error);
    }

    #wakeReaders() { for (const reader of this.#readers.splice(0)) reader(); }

    /** Delivers what has arrived. What became of messages that are sent is told by `#settle`. */
    #fetch() {
        while (this.#unread < this.#session.limits.inbound) {
            const event = this.#session.nextEvent(now());
            if (!event) return;
            if (event.kind !== "received") {
                this.#outcomes.push(event);
                continue;
            }
            this.#messages.push(event.message);
            this.#unread += event.message.length + messageCost;
            this.#wakeReaders();
        }
    }

    /** Tells what became of messages, once the link has taken the chunk that is being written. */
    #settle() {
        for (const event of this.#outcomes.splice(0)) {
            const pending = this.#pending.get(event.number);
            if (!pending) continue;
            if (event.kind === "progress") {
                try { pending.onProgress?.(event.count, pending.total); } catch (error) { queueMicrotask(() => { throw error; }); }
                continue;
            }
            this.#pending.delete(event.number);
            if (event.kind === "sent") pending.resolve(); else pending.reject(event.error);
        }
    }

    /** Hands chunks to the link, one after another: the promise of each write says when it takes the next. */
    async #pump() {
        this.#isMoved = true;
        if (this.#isPumping) return;
        this.#isPumping = true;
        try {
            while (this.#isMoved && !this.#error) {
                this.#isMoved = false;
                let chunk, link;
                while ((link = this.#link) && (chunk = this.#session.nextChunk(link.chunkSize, now()))) {
                    try {
                        await link.write(chunk);
                    } catch (error) {
                        if (this.#link !== link) break;
                        if (this.#session.survivesLinkLoss) this.#lose(link);
                        else this.#end(new FerryError(errors.LINK, error));
                    }
                    if (this.#error) return;
                    this.#fetch();
                    this.#settle();
                }
                this.#fetch();
                this.#settle();
                this.#arm();
            }
        } catch (error) {
            this.#fail(error);
        } finally {
            this.#isPumping = false;
        }
    }

    #arm() {
        clearTimeout(this.#timer);
        if (!this.#link) return;
        const at = this.#session.deadline();
        if (at === undefined) return;
        this.#timer = setTimeout(() => {
            try {
                this.#session.wake(now());
            } catch (error) {
                return this.#fail(error);
            }
            this.#pump();
        }, Math.min(Math.max(at - now(), 0), 0x7FFF_FFFF));
    }
}

// MARK: Web Bluetooth

export async function webBluetoothLink({ write, notify = write }, { chunkSize = 20, withResponse } = {}) {
    const answers = withResponse ?? !write.properties.writeWithoutResponse;
    const device = write.service.device;
    let listeners;
    return {
        chunkSize,
        write: (chunk) => answers ? write.writeValueWithResponse(chunk) : write.writeValueWithoutResponse(chunk),
        async open({ received, closed }) {
            listeners = {
                value: ({ target: { value } }) => received(new Uint8Array(value.buffer, value.byteOffset, value.byteLength)),
                gone: () => closed(),
            };
            notify.addEventListener("characteristicvaluechanged", listeners.value);
            device.addEventListener("gattserverdisconnected", listeners.gone);
            await notify.startNotifications();
        },
        close() {
            if (!listeners) return;
            notify.removeEventListener("characteristicvaluechanged", listeners.value);
            device.removeEventListener("gattserverdisconnected", listeners.gone);
            listeners = undefined;
            if (device.gatt.connected) notify.stopNotifications().catch(() => {});
        },
    };
}
