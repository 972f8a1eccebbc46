public import Ferry

/// The characteristics of a ``GATTConfiguration`` beside the one or two that carry chunks, as formats of others have them.
/// None by default.
///
/// A peripheral publishes them after the others, in the order state, length, queue, values, notes. A central needs all of them but
/// the values that are only offered.
public struct SideCharacteristics: Sendable, Hashable {
    /// Says when the link begins and when it ends; nil where the subscription and the connection say so.
    public var state: State?
    /// Says how long chunks towards the peripheral may be; nil where ATT_MTU alone does.
    public var length: Length?
    /// Holds the chunks towards the central, one after the other: after each notification of
    /// ``GATTConfiguration/characteristic``, whose values carry no chunk, and after each chunk that it sends the central reads it
    /// until it is empty. Nil where the notifications are the chunks. Chunks have up to 512 bytes at any ATT_MTU.
    public var queue: BluetoothUUID?
    /// Fixed values.
    public var values: [Value]
    /// Values that the peripheral tells beside its chunks; at most 255. Where there are any, each chunk towards the central, on
    /// both sides, begins with a byte that goes by no air: 0 for a chunk of ``GATTConfiguration/characteristic``, 1 for a value of
    /// the first note, 2 of the second, and so on.
    public var notes: [Note]

    /// Describes the characteristics.
    public init(
        state: State? = nil, length: Length? = nil, queue: BluetoothUUID? = nil, values: [Value] = [],
        notes: [Note] = []
    ) {
        self.state = state
        self.length = length
        self.queue = queue
        self.values = values
        self.notes = notes
    }

    /// A characteristic that both sides set: the central to ``start`` once it has subscribed to it and to the chunks, with
    /// which the link begins, and either side to ``end`` when it closes the link. A peer that sets it to anything else ends
    /// the link with `malformedStream`. The end may be missing: a connection that ends says as much.
    public struct State: Sendable, Hashable {
        /// The characteristic.
        public var uuid: BluetoothUUID
        /// The value by which the central begins.
        public var start: [UInt8]
        /// The value by which either side ends.
        public var end: [UInt8]
        /// Whether the central's values are answered.
        public var writeType: WriteType

        /// Describes the characteristic.
        public init(
            _ uuid: BluetoothUUID, start: [UInt8], end: [UInt8], writeType: WriteType = .withoutResponse
        ) {
            self.uuid = uuid
            self.start = start
            self.end = end
            self.writeType = writeType
        }
    }

    /// A characteristic whose value is the most bytes of a chunk towards the peripheral: 2 bytes. A central reads it before
    /// the link begins, and refuses 0.
    public struct Length: Sendable, Hashable {
        /// The characteristic.
        public var uuid: BluetoothUUID
        /// What a peripheral says.
        public var bytes: UInt16
        /// The order of the two bytes.
        public var byteOrder: LengthPrefixFraming.ByteOrder

        /// Describes the characteristic.
        public init(_ uuid: BluetoothUUID, bytes: UInt16, byteOrder: LengthPrefixFraming.ByteOrder = .big) {
            self.uuid = uuid
            self.bytes = bytes
            self.byteOrder = byteOrder
        }

        var value: [UInt8] {
            let (high, low) = (UInt8(bytes >> 8), UInt8(truncatingIfNeeded: bytes))
            return byteOrder == .big ? [high, low] : [low, high]
        }

        /// Nil for a value that has not 2 bytes.
        func bytes(in value: [UInt8]) -> Int? {
            guard value.count == 2 else { return nil }
            return byteOrder == .big ? Int(value[0]) << 8 | Int(value[1]) : Int(value[1]) << 8 | Int(value[0])
        }
    }

    /// A characteristic that can be read and always has the same value, of at most 512 bytes.
    public struct Value: Sendable, Hashable {
        /// What a central makes of it.
        @frozen public enum Use: Sendable, Hashable {
            /// Nothing: it is there for apps.
            case offered
            /// Before the link begins it reads the value, and goes no further when it is another one (`peerNotFound`): the
            /// peripheral proves by it that it is the one that was meant.
            case compared
        }

        /// The characteristic.
        public var uuid: BluetoothUUID
        /// Its value.
        public var bytes: [UInt8]
        /// What a central makes of it.
        public var use: Use

        /// Describes the characteristic.
        public init(_ uuid: BluetoothUUID, bytes: [UInt8], use: Use = .offered) {
            self.uuid = uuid
            self.bytes = bytes
            self.use = use
        }
    }

    /// A characteristic with a separate value, of at most 512 bytes. When the link begins the central reads it, which is the
    /// first value that arrives of it; later ones arrive as they are notified.
    public struct Note: Sendable, Hashable {
        /// The characteristic.
        public var uuid: BluetoothUUID
        /// The value at a peripheral until its link sends another.
        public var bytes: [UInt8]
        /// Whether the value changes, and the central subscribes to it.
        public var isNotified: Bool

        /// Describes the characteristic.
        public init(_ uuid: BluetoothUUID, bytes: [UInt8], isNotified: Bool = true) {
            self.uuid = uuid
            self.bytes = bytes
            self.isNotified = isNotified
        }
    }
}

extension SideCharacteristics {
    func definitions(encryptionRequired: Bool) -> [CharacteristicDefinition] {
        let readable: AttributePermissions = encryptionRequired ? .readEncryptionRequired : .readable
        var all: [CharacteristicDefinition] = []
        if let state {
            let updates: CharacteristicProperties = encryptionRequired ? [.notify, .notifyEncryptionRequired] : .notify
            all.append(
                CharacteristicDefinition(
                    state.uuid, properties: updates.union(state.writeType.property),
                    permissions: encryptionRequired ? .writeEncryptionRequired : .writeable))
        }
        if let length {
            all.append(
                CharacteristicDefinition(length.uuid, properties: .read, permissions: readable, value: length.value))
        }
        if let queue { all.append(CharacteristicDefinition(queue, properties: .read, permissions: readable)) }
        for value in values {
            all.append(
                CharacteristicDefinition(value.uuid, properties: .read, permissions: readable, value: value.bytes))
        }
        for note in notes {
            let updates: CharacteristicProperties = encryptionRequired ? [.notify, .notifyEncryptionRequired] : .notify
            all.append(
                CharacteristicDefinition(
                    note.uuid, properties: note.isNotified ? updates.union(.read) : .read, permissions: readable,
                    value: note.isNotified ? nil : note.bytes))
        }
        return all
    }

    /// Those that a central needs.
    var needed: [BluetoothUUID] {
        [state?.uuid, length?.uuid, queue].compactMap { $0 } + values.filter { $0.use == .compared }.map(\.uuid)
            + notes.map(\.uuid)
    }
}

extension SideCharacteristics.State {
    /// What the other side has set it to.
    enum Meaning {
        case start, end
        case unknown(FerryError)
    }

    func meaning(of value: [UInt8]) -> Meaning {
        if value == end { return .end }
        if value == start { return .start }
        return .unknown(
            FerryError(
                .malformedStream,
                "The peer has set state characteristic \(uuid) to \(hexadecimal(value)); \(hexadecimal(start)) begins a link and "
                    + "\(hexadecimal(end)) ends it. Check that it speaks the same format."))
    }

    /// Why the link has ended when the peer has set the state to its end.
    var endedByPeer: FerryError {
        FerryError(
            .disconnected, "The peer has ended the link by setting state characteristic \(uuid) to \(hexadecimal(end))."
        )
    }
}

extension WriteType {
    var property: CharacteristicProperties { self == .withResponse ? .write : .writeWithoutResponse }
}

/// At most 8 bytes, for messages.
func hexadecimal(_ bytes: [UInt8]) -> String {
    guard !bytes.isEmpty else { return "an empty value" }
    return "0x" + bytes.prefix(8).hexadecimal(uppercase: true) + (bytes.count > 8 ? "... (\(bytes.count) bytes)" : "")
}
