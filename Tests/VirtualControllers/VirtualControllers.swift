import Ferry

/// LE controllers on one ``Air``, two unless told, strict where real ones are: they know only the commands they say they
/// know, deliver only unmasked events, and note every buffer that a host overruns.
package struct VirtualControllers: Sendable {
    package struct Options: Sendable {
        package var isExtended = false
        package var hasDataLength = true
        package var usesBufferSizeV2 = false
        package var aclLength = 27
        package var aclCount = 4
        /// Peers that the filter accept list holds; 0 for none.
        package var listSize = 8
        /// Takes a list and does not go by it, as some controllers do.
        package var ignoresList = false
        /// Size of the pieces in which data is handed to a host.
        package var receiveLength = 27
        /// Whether packets are completed at once, or when the test says so.
        package var completesAtOnce = true
        /// Whether a side that ends the connection is given its own reason back, where 0x16 is due.
        package var echoesReason = false
        /// Commands that are never answered, although they are among those that are known.
        package var deafTo: Set<UInt16> = []
        /// What commands are answered with in Command Complete, in place of what the controller would say: from the status on,
        /// by opcode.
        package var answers: [UInt16: [UInt8]] = [:]
        package var hasCodedPHY = false
        /// Peers that the resolving list holds; 0 for none. It needs ``hash``.
        package var resolvingListSize = 0
        /// The function ah of a key, most significant octet first, and 24 bits (Core Specification 5.4, Vol 3, Part H, 2.2.2).
        package var hash: (@Sendable (_ key: [UInt8], _ prand: UInt64) -> UInt64)?
        /// Whether commands and frames are kept for a test to look at.
        package var isRecording = true
        /// How many connections a controller has at most.
        package var connectionCount = 32

        package init(
            isExtended: Bool = false, hasDataLength: Bool = true, usesBufferSizeV2: Bool = false, aclLength: Int = 27,
            aclCount: Int = 4, receiveLength: Int = 27, completesAtOnce: Bool = true, isRecording: Bool = true,
            listSize: Int = 8, ignoresList: Bool = false, echoesReason: Bool = false
        ) {
            self.isExtended = isExtended
            self.hasDataLength = hasDataLength
            self.usesBufferSizeV2 = usesBufferSizeV2
            self.aclLength = aclLength
            self.aclCount = aclCount
            self.receiveLength = receiveLength
            self.completesAtOnce = completesAtOnce
            self.isRecording = isRecording
            self.listSize = listSize
            self.ignoresList = ignoresList
            self.echoesReason = echoesReason
        }
    }

    package struct Side: Sendable {
        package var options = Options()
        package var random: [UInt8] = []
        /// The address of the advertising set.
        package var setAddress: [UInt8] = []
        package var resolvingList: [ResolvingEntry] = []
        package var isResolving = false
        package var isAdvertising = false
        /// What is advertised, by the types of legacy PDUs: 0 connectable, 2 scannable, 3 neither.
        package var advertisingType: UInt8 = 0
        /// Whether the packets are those of extended advertising.
        package var isExtendedPacket = false
        package var data: [UInt8] = []
        package var response: [UInt8] = []
        package var isScanning = false
        package var initiating: [UInt8]?
        /// Types and addresses.
        package var list: [[UInt8]] = []
        package var initiatesByList = false
        /// Interval, latency and supervision timeout of the connection that is being made.
        package var parameters: [UInt8] = []
        package var scansByList = false
        package var leMask: UInt64 = 0
        package var mask: UInt64 = 0
        /// Packets that its host has not been told to be completed, of all connections.
        package var held = 0
        package var waiting: [[UInt8]] = []
        /// Whether its host does not read; then it is told of no advertisers.
        package var isStalled = false
        package var commands: [UInt16] = []
        /// Commands as they came, without the H4 indicator.
        package var packets: [[UInt8]] = []
        package var isSilent = false
    }

    package var sides: [Side]
    /// By their handles, from ``handle`` on.
    package var connections: [Connection?] = []
    package var air = Air()
    /// What is drawn by chance, the same each time.
    var random = SeededGenerator(seed: 1)
    var serials = 0
    /// In nanoseconds.
    package var now: Int64 = 0
    /// Packets each way in a connection event; nil for data that pass at once.
    var pace: Int?
    /// Packets that passed in connection events and are to be completed when their receiver has taken them.
    package var deliveries: [Delivery] = []
    /// Who was connected and disconnected, for people.
    package var news: [String] = []
    /// Packets for each host.
    package var toHost: [[[UInt8]]]
    /// What a host did wrong.
    package var faults: [String] = []
    /// Complete L2CAP frames that went from each side.
    package var frames: [[[UInt8]]]

    package init(_ options: Options = Options(), count: Int = 2) {
        sides = .init(repeating: Side(options: options), count: count)
        toHost = .init(repeating: [], count: count)
        frames = .init(repeating: [], count: count)
    }

    package static let extendedCommands: [(Int, Int)] = [
        (36, 1), (36, 2), (36, 3), (36, 4), (36, 5), (37, 0), (37, 5), (37, 6), (37, 7),
    ]
    package static let legacyCommands: [(Int, Int)] = [(25, 5), (25, 7), (26, 0), (26, 1), (26, 2), (26, 3), (26, 4)]

    package func supportedCommands(_ side: Int) -> [UInt8] {
        var mask = [UInt8](repeating: 0, count: 64)
        var bits = [(15, 5), (26, 5), (27, 2), (28, 0), (28, 1), (28, 2), (33, 4), (33, 5), (14, 7)]
        bits += sides[side].options.isExtended ? Self.extendedCommands : Self.legacyCommands
        if sides[side].options.hasDataLength { bits += [(33, 6), (34, 0), (35, 3)] }
        if sides[side].options.usesBufferSizeV2 { bits.append((41, 5)) }
        if sides[side].options.resolvingListSize > 0 { bits += Self.resolvingCommands }
        if sides[side].options.listSize > 0 { bits += [(26, 6), (26, 7), (27, 0)] }
        for (octet, bit) in bits { mask[octet] |= 1 << UInt8(bit) }
        return mask
    }

    package mutating func event(_ code: UInt8, _ parameters: [UInt8], to side: Int) {
        if code == 0x3E {
            guard sides[side].mask >> 61 & 1 == 1, sides[side].leMask >> UInt64(parameters[0] - 1) & 1 == 1 else {
                return
            }
        }
        toHost[side].append([0x04, code, UInt8(parameters.count)] + parameters)
    }

    package mutating func complete(_ opcode: UInt16, _ result: [UInt8], to side: Int) {
        let answer = sides[side].options.answers[opcode] ?? result
        event(0x0E, [1, UInt8(opcode & 0xFF), UInt8(opcode >> 8)] + answer, to: side)
    }

    package mutating func status(_ opcode: UInt16, _ code: UInt8, to side: Int) {
        event(0x0F, [code, 1, UInt8(opcode & 0xFF), UInt8(opcode >> 8)], to: side)
    }

    /// Takes a packet of a host.
    package mutating func receive(_ packet: [UInt8], from side: Int) {
        if packet[0] == 0x02 { return receiveData(packet, from: side) }
        let opcode = UInt16(packet[1]) | UInt16(packet[2]) << 8
        if sides[side].options.isRecording {
            sides[side].commands.append(opcode)
            sides[side].packets.append(Array(packet[1...]))
        }
        guard !sides[side].isSilent, !sides[side].options.deafTo.contains(opcode) else { return }
        let parameters = Array(packet[4...])
        guard parameters.count >= Self.length(opcode, parameters) else {
            faults.append("a command \(String(opcode, radix: 16)) with \(parameters.count) bytes of parameters")
            return complete(opcode, [0x12], to: side)
        }
        command(opcode, parameters, side)
    }

    /// The least number of bytes that a command's parameters have, where any are looked at.
    private static func length(_ opcode: UInt16, _ parameters: [UInt8]) -> Int {
        switch opcode {
        case 0x0C01, 0x2001: 8
        case 0x2005: 6
        case 0x2008, 0x2009: 1 + Int(parameters.first ?? 0)
        case 0x200A, 0x200C, 0x2039, 0x2042, 0x202D: 1
        case 0x200D: 25
        case 0x2043: 26
        case 0x0406: 3
        case 0x2006: 15
        case 0x200B, 0x2011, 0x2035, 0x204E: 7
        case 0x2013: 14
        case 0x2019: 28
        case 0x201A: 18
        case 0x2022, 0x201B, 0x1405, 0x2041: 2
        case 0x2027: 39
        case 0x2036, 0x2037, 0x2038: opcode == 0x2036 ? 25 : 4
        default: 0
        }
    }

    private mutating func command(_ opcode: UInt16, _ p: [UInt8], _ side: Int) {
        switch opcode {
        case 0x0C03:
            reset(side)
            complete(opcode, [0], to: side)
        case 0x1001: complete(opcode, [0, 13, 0, 0, 13, 0x34, 0x12, 0, 0], to: side)
        case 0x1002: complete(opcode, [0] + supportedCommands(side), to: side)
        case 0x1003: complete(opcode, [0, 0, 0, 0, 0, 0x60, 0, 0, 0], to: side)
        case 0x1005:
            // The same buffers serve both kinds of data; there are none for voice.
            var bytes: [UInt8] = [0]
            bytes.append(u16: UInt16(sides[side].options.aclLength))
            bytes.append(0)
            bytes.append(u16: UInt16(sides[side].options.aclCount))
            bytes.append(u16: 0)
            complete(opcode, bytes, to: side)
        case 0x1009: complete(opcode, [0, 1, 2, 3, 4, 5 + UInt8(side >> 8), UInt8(side & 0xFF)], to: side)
        case 0x2003:
            var features: UInt64 = 1
            if sides[side].options.hasDataLength { features |= 1 << 5 }
            if sides[side].options.isExtended { features |= 1 << 12 }
            if sides[side].options.hasCodedPHY { features |= 1 << 11 }
            var bytes: [UInt8] = [0]
            bytes.append(u64: features)
            complete(opcode, bytes, to: side)
        case 0x2002 where !sides[side].options.usesBufferSizeV2, 0x2060 where sides[side].options.usesBufferSizeV2:
            var bytes: [UInt8] = [0]
            bytes.append(u16: UInt16(sides[side].options.aclLength))
            bytes.append(UInt8(sides[side].options.aclCount))
            complete(opcode, bytes + (opcode == 0x2060 ? [0, 0, 0] : []), to: side)
        case 0x0C01:
            sides[side].mask = u64(p)
            complete(opcode, [0], to: side)
        case 0x2001:
            sides[side].leMask = u64(p)
            complete(opcode, [0], to: side)
        case 0x2005:
            // Not while it is in use (Vol 4, Part E, 7.8.4).
            let isUsed = isOnAir(side)
            if isUsed { faults.append("the random address changes while it is in use") }
            if !isUsed { sides[side].random = p }
            complete(opcode, [isUsed ? 0x0C : 0], to: side)
        case 0x202F where sides[side].options.hasDataLength:
            complete(opcode, [0, 251, 0, 0x48, 0x08, 251, 0, 0x48, 0x08], to: side)
        case 0x2024 where sides[side].options.hasDataLength: complete(opcode, [0], to: side)
        case 0x2022 where sides[side].options.hasDataLength: complete(opcode, [0, p[0], p[1]], to: side)
        case 0x200F where sides[side].options.listSize > 0:
            complete(opcode, [0, UInt8(sides[side].options.listSize)], to: side)
        case 0x2010, 0x2011:
            // The list must not change while it is in use (Vol 4, Part E, 7.8.15).
            let isUsed =
                sides[side].initiating != nil && sides[side].initiatesByList
                || sides[side].isScanning && sides[side].scansByList
            if isUsed { faults.append("the filter accept list changes while it is in use") }
            let isFull = opcode == 0x2011 && sides[side].list.count == sides[side].options.listSize
            complete(opcode, [isUsed ? 0x0C : isFull ? 0x07 : 0], to: side)
            if !isUsed, opcode == 0x2010 { sides[side].list = [] }
            if !isUsed, !isFull, opcode == 0x2011 { sides[side].list.append(p) }
        case 0x2006, 0x2036, 0x2035, 0x200B, 0x2041:
            if opcode == 0x2035 {
                if sides[side].isAdvertising { faults.append("a set's address changes while it is in use") }
                sides[side].setAddress = Array(p[1...])
            }
            if opcode == 0x2006 { sides[side].advertisingType = p[4] }
            if opcode == 0x2036 { sides[side].advertisingType = p[1] & 1 == 1 ? 0 : p[1] & 2 == 2 ? 2 : 3 }
            if opcode == 0x2036 {
                let isExtendedPacket = p[1] & 0x10 == 0
                if isExtendedPacket != sides[side].isExtendedPacket, !sides[side].data.isEmpty {
                    faults.append("a set with data becomes one of the other kind")
                }
                sides[side].isExtendedPacket = isExtendedPacket
            }
            if opcode == 0x200B { sides[side].scansByList = p[6] == 1 }
            if opcode == 0x2041 { sides[side].scansByList = p[1] == 1 }
            complete(opcode, known(opcode, side) ? (opcode == 0x2036 ? [0, 0] : [0]) : [1], to: side)
        case 0x2008, 0x2037:
            sides[side].data = opcode == 0x2008 ? Array(p[1..<1 + Int(p[0])]) : Array(p[4...])
            complete(opcode, known(opcode, side) ? [0] : [1], to: side)
        case 0x2009, 0x2038:
            sides[side].response = opcode == 0x2009 ? Array(p[1..<1 + Int(p[0])]) : Array(p[4...])
            complete(opcode, known(opcode, side) ? [0] : [1], to: side)
        case 0x203C where known(opcode, side):
            if sides[side].isAdvertising { faults.append("a set is removed while it is in use") }
            sides[side].data = []
            sides[side].response = []
            complete(opcode, [0], to: side)
        case 0x200A, 0x2039:
            let isKnown = known(opcode, side)
            complete(opcode, isKnown ? [0] : [1], to: side)
            if isKnown { sides[side].isAdvertising = p[0] == 1 }
            meet()
        case 0x200C, 0x2042:
            let isKnown = known(opcode, side)
            complete(opcode, isKnown ? [0] : [1], to: side)
            if isKnown { sides[side].isScanning = p[0] == 1 }
            meet()
        case 0x200D, 0x2043:
            guard known(opcode, side), hasRoom(side) else {
                status(opcode, known(opcode, side) ? 0x09 : 1, to: side)
                break
            }
            status(opcode, 0, to: side)
            sides[side].initiating = opcode == 0x200D ? Array(p[6..<12]) : Array(p[3..<9])
            sides[side].initiatesByList = (opcode == 0x200D ? p[4] : p[0]) == 1
            // The longest interval that is wanted, latency and supervision timeout.
            sides[side].parameters = opcode == 0x200D ? Array(p[15..<21]) : Array(p[16..<22])
            meet()
        case 0x200E:
            complete(opcode, [sides[side].initiating == nil ? 0x0C : 0], to: side)
            if sides[side].initiating != nil {
                sides[side].initiating = nil
                event(0x3E, [0x01, 0x02] + [UInt8](repeating: 0, count: 17), to: side)
            }
        case 0x0406, 0x2013, 0x2019:
            let slot = slot(of: p, on: side)
            status(opcode, slot == nil ? 2 : 0, to: side)
            if let slot { whenInReach(opcode, p, side, slot) }
        case 0x201A, 0x201B:
            let slot = slot(of: p, on: side)
            complete(opcode, [slot == nil ? 2 : 0, p[0], p[1]], to: side)
            if let slot { whenInReach(opcode, p, side, slot) }
        case 0x1405:
            let heard = slot(of: p, on: side).map { signal($0) }
            complete(opcode, [heard == nil ? 2 : 0, p[0], p[1], UInt8(bitPattern: heard ?? 127)], to: side)
        default: if !resolvingCommand(opcode, p, side) { complete(opcode, [1], to: side) }
        }
    }

    /// What Reset does, and the loss of a host: its connection is lost.
    package mutating func reset(_ side: Int) {
        for slot in slots(of: side) { disconnect(slot, reason: 0x08, from: side, tellSelf: false) }
        sides[side] = Side(options: sides[side].options)
    }

    /// Whether it is a command of the kind, legacy or extended, that the side has.
    private func known(_ opcode: UInt16, _ side: Int) -> Bool {
        (opcode >= 0x2035) == sides[side].options.isExtended
    }

    private func u64(_ bytes: [UInt8]) -> UInt64 { bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
}

extension [UInt8] {
    fileprivate mutating func append(u16 value: UInt16) {
        append(UInt8(truncatingIfNeeded: value))
        append(UInt8(truncatingIfNeeded: value >> 8))
    }

    fileprivate mutating func append(u64 value: UInt64) {
        for place in 0..<8 { append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(place)))) }
    }
}
