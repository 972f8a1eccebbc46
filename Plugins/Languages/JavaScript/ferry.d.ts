/** How messages are put into chunks. Both sides use the same. */
export type Framing =
    /** A chunk that holds `marker` alone ends a message; the link must keep the boundaries of chunks, as GATT does. */
    | { kind: "end-of-message"; /** 2 to 20 bytes; `EOM` unless given. */ marker?: Uint8Array; /** The most bytes of a chunk; unless given, what the link takes. */ chunkSize?: number }
    /** Each message's length stands before it. */
    | { kind: "length-prefix"; prefix?: "varint" | "16-big" | "16-little" | "32-big" | "32-little" }
    /** Numbered, acknowledged and checked; it goes on over the next link. */
    | { kind: "sequenced"; /** Differs from those of sessions before; random unless given. */ identifier?: number; /** The most chunks that are out at once, 1 to 64; 32 unless given. */ window?: number;
        /** How messages are encoded. The peer must tell the same, and channels in Swift tell theirs; `untold` unless given. From 64 to 255 a number of one's own. */ codec?: "untold" | "bytes" | "text" | "json" | "property-list" | "cbor" | number };

/** What one session may hold. */
export interface Limits {
    /** The largest message in either direction, in bytes: 4096 unless given, at most 16 MiB. */
    message: number;
    /** The most bytes that wait to be sent: 8192. */
    outbound: number;
    /** The most messages that wait to be sent: 16. */
    outboundMessages: number;
    /** The most bytes that have arrived and are not read: 8192. Half of it is the sequenced framing's credit. */
    inbound: number;
    /** The longest silence in the middle of a message: 60 000. */
    stallMilliseconds: number;
}

export const defaultLimits: Readonly<Limits>;

/** The numbers of errors: those of ferry.h, TRAPPED and LINK. */
export const errors: Readonly<Record<
    "ARGUMENT" | "BUFFER" | "ORDER" | "FULL" | "MESSAGE_TOO_LARGE" | "NOT_TEXT" | "CHUNK_SIZE_TOO_SMALL" | "MALFORMED_STREAM"
    | "INCOMPATIBLE_PEER" | "PEER_LOST_STATE" | "TRUNCATED" | "TIMED_OUT" | "CANCELLED_BY_PEER" | "CONFIGURATION" | "OTHER"
    | "TRAPPED" | "LINK", number>>;

export class FerryError extends Error {
    constructor(code: number, cause?: unknown);
    /** One of `errors`. */
    readonly code: number;
}

/** Where chunks go: the seam for links other than Web Bluetooth. */
export interface Link {
    /** The most bytes of a chunk. */
    readonly chunkSize: number;
    /** Sends a chunk. The promise is fulfilled when the link takes the next one. */
    write(chunk: Uint8Array): Promise<void>;
    /** Begins to deliver what arrives. `closed` is called once, when the peer or the radio has ended the link. */
    open(listener: { received(chunk: Uint8Array): void; closed(): void }): Promise<void>;
    /** Stops the delivery. Does not disconnect. */
    close(): void;
}

export interface ChannelOptions {
    /** Length prefix, varint, unless given. */
    framing?: Framing;
    limits?: Partial<Limits>;
}

export interface BluetoothOptions extends ChannelOptions {
    /**
     * The most bytes of a chunk, 20 unless given, which every link takes. Web Bluetooth does not tell what was negotiated; it is
     * 182 and more with iPhones and most phones, and 244 with many peripherals.
     */
    chunkSize?: number;
    /** Whether each write is acknowledged. Unless given, only where the characteristic cannot do without. */
    withResponse?: boolean;
}

export interface SendOptions {
    /** Takes the message back if it can; `send` rejects with the signal's reason at once. */
    signal?: AbortSignal;
    /** Bytes accepted so far by the link, or, sequenced, by the peer. */
    onProgress?(accepted: number, total: number): void;
}

/** The characteristics of Web Bluetooth that a link writes to and is notified by; one may do both. */
export interface Characteristics {
    write: BluetoothRemoteGATTCharacteristic;
    notify?: BluetoothRemoteGATTCharacteristic;
}

/** Messages in both directions over a link. Iterating over it reads messages until the channel is closed. */
export class FerryChannel implements AsyncIterable<Uint8Array> {
    /** Opens a channel over any link. */
    static create(link: Link, options?: ChannelOptions): Promise<FerryChannel>;
    /** Opens a channel over characteristics of a connected device. */
    static overCharacteristics(characteristics: Characteristics, options?: BluetoothOptions): Promise<FerryChannel>;

    /** Fulfilled with the reason when the channel has ended; `errors.ORDER` when this side or the peer has closed it. */
    readonly closed: Promise<FerryError>;
    readonly limits: Readonly<Limits>;

    /** Sends a message, and waits until it is out: handed to the link, or, sequenced, with the peer. Text goes as UTF-8. */
    send(message: Uint8Array | string, options?: SendOptions): Promise<void>;
    /** Waits for the next message. Rejects when the channel has ended and all messages have been read. */
    receive(): Promise<Uint8Array>;
    [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
    /** Goes on over another link. For the sequenced framing only. */
    resume(link: Link): Promise<void>;
    /** Ends the channel. Sends that wait are rejected. Does not disconnect. */
    close(): void;
}

/** A link over characteristics, for `resume`. */
export function webBluetoothLink(
    characteristics: Characteristics, options?: Pick<BluetoothOptions, "chunkSize" | "withResponse">): Promise<Link>;

export type SessionEvent =
    | { kind: "received"; message: Uint8Array }
    | { kind: "progress"; number: bigint; count: number }
    | { kind: "sent"; number: bigint }
    | { kind: "failed"; number: bigint; error: FerryError }
    | { kind: "receive-failed"; error: FerryError };

/** Milliseconds since any moment, or nanoseconds as a bigint. */
export type Time = number | bigint;

/**
 * One side of one link without I/O and clock, as in ferry.h; `FerryChannel` drives one. Each method throws FerryError. A code above
 * -16 is the caller's own mistake and changes nothing.
 */
export class Session {
    static create(framing: Framing, limits?: Partial<Limits>): Promise<Session>;
    private constructor();
    readonly limits: Readonly<Limits>;
    readonly survivesLinkLoss: boolean;
    linkOpened(now: Time): void;
    linkClosed(now: Time): void;
    /** Takes a message to be sent, and returns its number. */
    enqueue(message: Uint8Array, now: Time): bigint;
    /** Takes a message back; returns whether the peer will not get it. */
    cancel(number: number | bigint, now: Time): boolean;
    /** Returns the next chunk, of at most `capacity` bytes; it counts as sent. */
    nextChunk(capacity: number, now: Time): Uint8Array | undefined;
    /** Takes a chunk that arrived, as it was sent. */
    receive(chunk: Uint8Array, now: Time): void;
    /** Returns what happened, oldest first. */
    nextEvent(now: Time): SessionEvent | undefined;
    /** Returns when to call `wake`, in milliseconds. */
    deadline(): number | undefined;
    /** Says that a deadline may have come. */
    wake(now: Time): void;
}
