import Ferry

extension VirtualControllers {
    /// A connection between two controllers; both call it by the same handle.
    package struct Connection: Sendable {
        package struct End: Sendable {
            package let side: Int
            /// Packets of this side's host that have not been completed.
            package var held = 0
            package var assembled: [UInt8] = []
            /// The key that encryption was asked for with.
            package var key: [UInt8] = []
            /// Packets that wait for a connection event.
            var queued: [[UInt8]] = []
        }

        /// No other connection has or had it.
        package let serial: Int
        /// The central's and the peripheral's.
        package var ends: [End]
        /// In nanoseconds, as the following.
        var interval: Int64
        var timeout: Int64
        /// When both last heard one another; while nothing can be lost it is not kept up to date.
        var heardAt: Int64
        var nextEvent: Int64
        /// Commands that wait for the other side to be within reach.
        var procedures: [(end: Int, opcode: UInt16, parameters: [UInt8])] = []
        var random: SeededGenerator

        func end(of side: Int) -> Int? { ends[0].side == side ? 0 : ends[1].side == side ? 1 : nil }

        mutating func setParameters(_ bytes: [UInt8]) {
            // Within the least that there is (Vol 4, Part E, 7.8.12), so that time passes from event to event.
            interval = Int64(max(6, Int(bytes[0]) | Int(bytes[1]) << 8)) * 1_250_000
            timeout = Int64(max(10, Int(bytes[4]) | Int(bytes[5]) << 8)) * 10_000_000
        }
    }

    /// Packets that were given to a connection's other side, and are completed when its host has taken them.
    package struct Delivery: Sendable {
        package let slot: Int
        package let serial: Int
        /// Whose packets they are.
        package let end: Int
        package var count: Int

        package init(slot: Int, serial: Int, end: Int, count: Int) {
            self.slot = slot
            self.serial = serial
            self.end = end
            self.count = count
        }
    }

    /// The handle of the first connection. Handles end at 0x0EFF (Vol 4, Part E, 5.4.2), and so does the number of connections.
    package static let handle: UInt16 = 0x0040
    package static let maximumConnections = 0x0EFF - Int(handle) + 1

    package static func handle(of slot: Int) -> UInt16 { handle + UInt16(slot) }

    /// The connection that a side has under a handle, whose upper four bits count for nothing.
    package func slot(of handle: UInt16, on side: Int) -> Int? {
        let slot = Int(handle & 0x0FFF) - Int(Self.handle)
        guard connections.indices.contains(slot), connections[slot]?.end(of: side) != nil else { return nil }
        return slot
    }

    func slot(of parameters: [UInt8], on side: Int) -> Int? {
        slot(of: UInt16(parameters[0]) | UInt16(parameters[1]) << 8, on: side)
    }

    func slots(of side: Int) -> [Int] { connections.indices.filter { connections[$0]?.end(of: side) != nil } }

    package func isConnected(_ side: Int) -> Bool { connections.contains { $0?.end(of: side) != nil } }

    package func isConnected(_ first: Int, _ second: Int) -> Bool {
        connections.contains { $0?.end(of: first) != nil && $0?.end(of: second) != nil }
    }

    func hasRoom(_ side: Int) -> Bool { slots(of: side).count < sides[side].options.connectionCount }

    /// Connects two sides, and tells both; false when there is no handle left.
    mutating func connect(_ central: Int, to peripheral: Int, calling address: [UInt8]) -> Bool {
        let slot = connections.firstIndex { $0 == nil } ?? connections.count
        guard slot < Self.maximumConnections else { return false }
        serials += 1
        var connection = Connection(
            serial: serials, ends: [.init(side: central), .init(side: peripheral)], interval: 0, timeout: 0,
            heardAt: now,
            nextEvent: now, random: SeededGenerator(seed: random.next()))
        connection.setParameters(sides[central].parameters)
        connection.nextEvent += connection.interval
        if slot == connections.count { connections.append(connection) } else { connections[slot] = connection }
        let parameters = sides[central].parameters
        for (place, role) in [(central, UInt8(0)), (peripheral, 1)] {
            connectionComplete(
                role, with: place == central ? address : sides[central].random, parameters, slot, to: place)
        }
        news.append("\(central) is connected to \(peripheral).")
        return true
    }

    /// Ends a connection; the reason is that of `side`.
    mutating func disconnect(_ slot: Int, reason: UInt8, from side: Int, tellSelf: Bool) {
        guard let connection = connections[slot] else { return }
        connections[slot] = nil
        let handle = Self.handle(of: slot)
        for end in connection.ends {
            sides[end.side].held -= end.held
            sides[end.side].waiting.removeAll { Self.slot(ofPacket: $0) == slot }
            // Nobody ended a connection that was lost.
            let isOwn = end.side == side && !sides[end.side].options.echoesReason && reason != 0x08
            if end.side != side || tellSelf {
                event(0x05, [0, UInt8(handle & 0xFF), UInt8(handle >> 8), isOwn ? 0x16 : reason], to: end.side)
            }
        }
        let reasons = [UInt8(0x08): "lost", 0x3D: "ended, for its key is another"]
        news.append(
            "\(connection.ends[0].side) and \(connection.ends[1].side) are \(reasons[reason] ?? "disconnected").")
    }

    private static func slot(ofPacket packet: [UInt8]) -> Int {
        (Int(packet[1]) | Int(packet[2] & 0x0F) << 8) - Int(handle)
    }

    /// How strongly both sides of a connection hear one another; what they last heard is over soon.
    func signal(_ slot: Int) -> Int8 {
        guard let ends = connections[slot]?.ends else { return 127 }
        return air.path(ends[0].side, ends[1].side).signal ?? 127
    }

    /// What a connection's other side takes part in.
    mutating func perform(_ opcode: UInt16, _ p: [UInt8], _ side: Int, _ slot: Int) {
        guard let connection = connections[slot], let end = connection.end(of: side) else { return }
        let other = connection.ends[1 - end].side
        switch opcode {
        case 0x0406: disconnect(slot, reason: p[2], from: side, tellSelf: true)
        case 0x2013:
            connections[slot]?.setParameters(Array(p[4..<10]))
            for place in [side, other] { event(0x3E, [0x03, 0] + p[..<2] + p[4..<10], to: place) }
        case 0x2019:
            connections[slot]?.ends[end].key = Array(p[12...])
            event(0x3E, [0x05] + p[..<12], to: other)
        case 0x201A where connection.ends[1 - end].key == Array(p[2...]):
            for place in [side, other] { event(0x08, [0] + p[..<2] + [1], to: place) }
        case 0x201A: disconnect(slot, reason: 0x3D, from: side, tellSelf: true)
        default: event(0x08, [0x06] + p[..<2] + [0], to: other)
        }
    }

    // MARK: Data

    mutating func receiveData(_ packet: [UInt8], from side: Int) {
        guard packet.count >= 5, let slot = slot(of: UInt16(packet[1]) | UInt16(packet[2]) << 8, on: side),
            admit(packet.count - 5, from: side, on: slot), let end = connections[slot]?.end(of: side)
        else { return }
        if waitsForEvent(slot, end) {
            wait(packet, slot, end)
        } else if sides[side].options.completesAtOnce {
            deliver(packet, from: side, on: slot)
            complete(1, slot, end)
        } else {
            sides[side].waiting.append(packet)
        }
    }

    /// Notes a data packet of a host and whether it had leave to send it; one without a buffer is lost.
    package mutating func admit(_ count: Int, from side: Int, on slot: Int) -> Bool {
        if count > sides[side].options.aclLength { faults.append("a packet of \(count) bytes") }
        guard let end = connections[slot]?.end(of: side) else { return false }
        guard sides[side].held < sides[side].options.aclCount else {
            faults.append("\(sides[side].held + 1) packets held")
            return false
        }
        sides[side].held += 1
        connections[slot]?.ends[end].held += 1
        return true
    }

    /// Whether a packet that `admit` took may go to the other host as it is: a whole frame that follows a whole one, of
    /// which nothing waits.
    package func isWholeFrame(_ flags: UInt8, count: Int, frameCount: Int, on slot: Int, _ end: Int) -> Bool {
        guard let connection = connections[slot] else { return false }
        return flags >> 4 == 0 && frameCount + 4 == count && connection.ends[end].assembled.isEmpty
            && sides[connection.ends[end].side].waiting.isEmpty
            && count <= sides[connection.ends[1 - end].side].options.receiveLength
    }

    /// Sends what a side holds back.
    package mutating func release(_ count: Int, on side: Int) {
        let packets = sides[side].waiting.prefix(count)
        sides[side].waiting.removeFirst(packets.count)
        for packet in packets {
            let slot = Self.slot(ofPacket: packet)
            deliver(packet, from: side, on: slot)
            if let end = connections[slot]?.end(of: side) { complete(1, slot, end) }
        }
    }

    /// Tells a host that its packets have been delivered.
    package mutating func completePackets(_ delivery: Delivery) {
        // A connection that has ended took its packets with it.
        guard connections[delivery.slot]?.serial == delivery.serial else { return }
        complete(delivery.count, delivery.slot, delivery.end)
    }

    private mutating func complete(_ count: Int, _ slot: Int, _ end: Int) {
        guard let own = connections[slot]?.ends[end], own.held >= count else { return }
        connections[slot]?.ends[end].held -= count
        sides[own.side].held -= count
        let handle = Self.handle(of: slot)
        event(0x13, [1, UInt8(handle & 0xFF), UInt8(handle >> 8), UInt8(count), 0], to: own.side)
    }

    /// Passes a packet on that `admit` took, once its frame is whole.
    package mutating func deliver(_ packet: [UInt8], from side: Int, on slot: Int) {
        guard let end = connections[slot]?.end(of: side), var frame = connections[slot]?.ends[end].assembled else {
            return
        }
        let isFirst = packet[2] >> 4 == 0
        if isFirst != frame.isEmpty { faults.append("fragments out of order") }
        connections[slot]?.ends[end].assembled = []
        frame += packet[5...]
        let total = frame.count < 4 ? 4 : 4 + Int(frame[0]) + Int(frame[1]) << 8
        guard frame.count >= total else {
            connections[slot]?.ends[end].assembled = frame
            return
        }
        guard frame.count == total else {
            faults.append("fragments that are longer than their frame")
            return
        }
        if sides[side].options.isRecording { frames[side].append(frame) }
        if let other = connections[slot]?.ends[1 - end].side { sendFrame(frame, to: other, on: slot) }
    }

    /// Hands a frame to a host in pieces, as controllers do; of its first connection unless told.
    package mutating func sendFrame(_ frame: [UInt8], to side: Int, on slot: Int? = nil) {
        let handle = Self.handle(of: slot ?? slots(of: side).first ?? 0)
        var start = 0
        while start < frame.count {
            let piece = frame[start..<min(start + sides[side].options.receiveLength, frame.count)]
            let flags: UInt8 = start == 0 ? 0x20 : 0x10
            toHost[side].append(
                [
                    0x02, UInt8(handle & 0xFF), UInt8(handle >> 8) | flags, UInt8(piece.count & 0xFF),
                    UInt8(piece.count >> 8),
                ]
                    + piece)
            start += piece.count
        }
    }
}
