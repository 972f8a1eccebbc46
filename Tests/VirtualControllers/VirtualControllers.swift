/// Two LE controllers on one table, strict where real ones are: they know only the commands they say they know, deliver
/// only unmasked events, and note every buffer that a host overruns.
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
        package var hasCodedPHY = false
        /// Peers that the resolving list holds; 0 for none. It needs ``hash``.
        package var resolvingListSize = 0
        /// The function ah of a key, most significant octet first, and 24 bits (Core Specification 5.4, Vol 3, Part H, 2.2.2).
        package var hash: (@Sendable (_ key: [UInt8], _ prand: UInt64) -> UInt64)?
        /// Whether commands and frames are kept for a test to look at.
        package var isRecording = true

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
        package var isConnected = false
        package var held = 0
        package var waiting: [[UInt8]] = []
        package var assembled: [UInt8] = []
        package var commands: [UInt16] = []
        /// Commands as they came, without the H4 indicator.
        package var packets: [[UInt8]] = []
        package var isSilent = false
        /// The key that encryption was asked for with.
        package var key: [UInt8] = []
    }

    package static let handle: UInt16 = 0x0040
    package var sides: [Side]
    /// Packets for each host.
    package var toHost: [[[UInt8]]] = [[], []]
    /// What a host did wrong.
    package var faults: [String] = []
    /// Complete L2CAP frames that went from each side.
    package var frames: [[[UInt8]]] = [[], []]

    package init(_ options: Options = Options()) {
        let side = Side(options: options)
        sides = [side, side]
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
        event(0x0E, [1, UInt8(opcode & 0xFF), UInt8(opcode >> 8)] + result, to: side)
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
        if !sides[side].isSilent, !sides[side].options.deafTo.contains(opcode) {
            command(opcode, Array(packet[4...]), side)
        }
    }

    private mutating func command(_ opcode: UInt16, _ p: [UInt8], _ side: Int) {
        let other = 1 - side
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
        case 0x1009: complete(opcode, [0, 1, 2, 3, 4, 5, UInt8(side)], to: side)
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
            status(opcode, known(opcode, side) ? 0 : 1, to: side)
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
        case 0x0406:
            let isKnown = sides[side].isConnected && UInt16(p[0]) | UInt16(p[1]) << 8 == Self.handle
            status(opcode, isKnown ? 0 : 2, to: side)
            if isKnown { disconnect(reason: p[2], from: side, tellSelf: true) }
        case 0x2013:
            status(opcode, 0, to: side)
            for place in [side, other] {
                event(0x3E, [0x03, 0, 0x40, 0] + p[4..<6] + p[6..<10], to: place)
            }
        case 0x2019:
            status(opcode, sides[side].isConnected ? 0 : 2, to: side)
            sides[side].key = Array(p[12...])
            event(0x3E, [0x05] + p[..<12], to: other)
        case 0x201A:
            complete(opcode, [0, p[0], p[1]], to: side)
            if sides[other].key == Array(p[2...]) {
                for place in [side, other] { event(0x08, [0, 0x40, 0, 1], to: place) }
            } else {
                disconnect(reason: 0x3D, from: side, tellSelf: true)
            }
        case 0x201B:
            complete(opcode, [0, p[0], p[1]], to: side)
            event(0x08, [0x06, 0x40, 0, 0], to: other)
        case 0x1405: complete(opcode, [0, p[0], p[1], UInt8(bitPattern: -47)], to: side)
        default: if !resolvingCommand(opcode, p, side) { complete(opcode, [1], to: side) }
        }
    }

    /// What Reset does, and the loss of a host: its connection is lost.
    package mutating func reset(_ side: Int) {
        if sides[side].isConnected { disconnect(reason: 0x08, from: side, tellSelf: false) }
        sides[side] = Side(options: sides[side].options)
    }

    private func known(_ opcode: UInt16, _ side: Int) -> Bool {
        (opcode >= 0x2035) == sides[side].options.isExtended
    }

    private func u64(_ bytes: [UInt8]) -> UInt64 { bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }

    /// Scanners hear advertisers, and initiators find them.
    package mutating func meet() {
        for side in 0...1 where sides[1 - side].isAdvertising {
            let peer = sides[1 - side]
            // Nobody from before Bluetooth 5 hears it.
            guard !peer.isExtendedPacket || sides[side].options.isExtended else { continue }
            let address = peer.options.isExtended && !peer.setAddress.isEmpty ? peer.setAddress : peer.random
            let (type, named) = name(of: address, on: side)
            let isListed = sides[side].list.contains([type & 1] + named) && !sides[side].options.ignoresList
            if sides[side].isScanning, isListed || !sides[side].scansByList {
                let kind = peer.advertisingType
                let legacyType: UInt8 = kind == 0 ? 0x13 : kind == 2 ? 0x12 : 0x10
                let extendedType = peer.isExtendedPacket ? legacyType & 0x01 : legacyType
                var reports = pieces(of: peer.data, extendedType).map { (kind, $0.type, $0.data) }
                if kind != 3, !peer.isExtendedPacket { reports.append((4, extendedType | 0x08, peer.response)) }
                for (legacy, extended, data) in reports {
                    if sides[side].options.isExtended {
                        event(
                            0x3E,
                            extendedReport(extended, [type] + named, data), to: side)
                    } else {
                        event(0x3E, legacyReport(legacy, [type] + named, data), to: side)
                    }
                }
            }
            let isAwaited =
                sides[side].initiatesByList
                ? sides[side].initiating != nil && isListed : sides[side].initiating == named
            if isAwaited, !peer.isConnected, peer.advertisingType == 0 {
                sides[side].initiating = nil
                sides[1 - side].isAdvertising = false
                for (place, role) in [(side, UInt8(0)), (1 - side, 1)] {
                    sides[place].isConnected = true
                    sides[place].held = 0
                    sides[place].assembled = []
                    connectionComplete(
                        role, with: place == side ? address : sides[side].random, sides[side].parameters, to: place)
                }
            }
        }
    }

    /// Data that do not fit an event are told in pieces (Vol 4, Part E, 7.7.65.13).
    private func pieces(of data: [UInt8], _ type: UInt8) -> [(type: UInt8, data: [UInt8])] {
        guard data.count > 100 else { return [(type, data)] }
        return [(type | 0x20, Array(data[..<100])), (type, Array(data[100...]))]
    }

    private func legacyReport(_ type: UInt8, _ address: [UInt8], _ data: [UInt8]) -> [UInt8] {
        var report: [UInt8] = [0x02, 1, type]
        report += address
        report.append(UInt8(data.count))
        report += data
        report.append(0xCE)
        return report
    }

    private func extendedReport(_ type: UInt8, _ address: [UInt8], _ data: [UInt8]) -> [UInt8] {
        var report: [UInt8] = [0x0D, 1, type, 0]
        report += address
        report += [1, 0, 0xFF, 127, 0xCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(data.count)]
        return report + data
    }

    package mutating func disconnect(reason: UInt8, from side: Int, tellSelf: Bool) {
        for place in 0...1 {
            sides[place].isConnected = false
            sides[place].held = 0
            sides[place].waiting = []
            sides[place].assembled = []
            let told = place == side && !sides[place].options.echoesReason ? 0x16 : reason
            if place != side || tellSelf { event(0x05, [0, 0x40, 0, told], to: place) }
        }
    }

    private mutating func receiveData(_ packet: [UInt8], from side: Int) {
        guard admit(packet.count - 5, from: side) else { return }
        if sides[side].options.completesAtOnce {
            deliver(packet, from: side)
            completePackets(1, on: side)
        } else {
            sides[side].waiting.append(packet)
        }
    }

    /// Notes a data packet of a host and whether it had leave to send it; false when there is nobody to send it to.
    package mutating func admit(_ count: Int, from side: Int) -> Bool {
        if count > sides[side].options.aclLength { faults.append("a packet of \(count) bytes") }
        guard sides[side].isConnected else { return false }
        sides[side].held += 1
        if sides[side].held > sides[side].options.aclCount { faults.append("\(sides[side].held) packets held") }
        return true
    }

    /// Whether a packet that `admit` took may go to the other host as it is: a whole frame that follows a whole one, of
    /// which nothing waits.
    package func isWholeFrame(_ flags: UInt8, count: Int, frameCount: Int, from side: Int) -> Bool {
        flags >> 4 == 0 && frameCount + 4 == count && sides[side].assembled.isEmpty && sides[side].waiting.isEmpty
            && count <= sides[1 - side].options.receiveLength
    }

    /// Sends what a side holds back.
    package mutating func release(_ count: Int, on side: Int) {
        let packets = sides[side].waiting.prefix(count)
        sides[side].waiting.removeFirst(packets.count)
        for packet in packets { deliver(packet, from: side) }
        if !packets.isEmpty { completePackets(packets.count, on: side) }
    }

    /// Tells a host that its packets have been delivered.
    package mutating func completePackets(_ count: Int, on side: Int) {
        // A connection that has ended took its packets with it.
        guard sides[side].isConnected, sides[side].held >= count else { return }
        sides[side].held -= count
        event(0x13, [1, 0x40, 0, UInt8(count), 0], to: side)
    }

    /// Passes a packet on that `admit` took, once its frame is whole.
    package mutating func deliver(_ packet: [UInt8], from side: Int) {
        let isFirst = packet[2] >> 4 == 0
        if isFirst != sides[side].assembled.isEmpty { faults.append("fragments out of order") }
        sides[side].assembled += packet[5...]
        let frame = sides[side].assembled
        guard frame.count >= 4, frame.count == 4 + Int(frame[0]) + Int(frame[1]) << 8 else { return }
        sides[side].assembled = []
        if sides[side].options.isRecording { frames[side].append(frame) }
        sendFrame(frame, to: 1 - side)
    }

    /// Hands a frame to a host in pieces, as controllers do.
    package mutating func sendFrame(_ frame: [UInt8], to side: Int) {
        var start = 0
        while start < frame.count {
            let piece = frame[start..<min(start + sides[side].options.receiveLength, frame.count)]
            toHost[side].append(
                [0x02, 0x40, start == 0 ? 0x20 : 0x10, UInt8(piece.count & 0xFF), UInt8(piece.count >> 8)] + piece)
            start += piece.count
        }
    }
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
