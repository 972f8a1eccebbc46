import Ferry

// What takes time: connection events that can be lost or carry so much and no more, and supervision timeouts (Core
// Specification 5.4, Vol 6, Part B, 4.5). Where nothing can be lost and no pace is set, data pass at once.
extension VirtualControllers {
    /// When ``advance(to:)`` has something to do, in nanoseconds; nil for not before something changes.
    package var deadline: Int64? {
        var earliest: Int64?
        for slot in connections.indices {
            guard let due = deadline(slot) else { continue }
            earliest = min(earliest ?? due, due)
        }
        return earliest
    }

    private func deadline(_ slot: Int) -> Int64? {
        guard let connection = connections[slot] else { return nil }
        let path = air.path(connection.ends[0].side, connection.ends[1].side)
        let end = connection.heardAt + connection.timeout
        guard path.signal != nil else { return end }
        if path.loss > 0 { return min(end, connection.nextEvent) }
        return hasSomethingToSend(connection) ? connection.nextEvent : nil
    }

    private func hasSomethingToSend(_ connection: Connection) -> Bool {
        !connection.procedures.isEmpty || connection.ends.contains { !$0.queued.isEmpty }
    }

    /// Lets time pass until `time`, in nanoseconds; it never goes back.
    package mutating func advance(to time: Int64) {
        for slot in connections.indices {
            while let due = deadline(slot), due <= time { pass(max(due, now), slot) }
        }
        now = max(now, time)
    }

    /// What is due of a connection at a time: its event, or its end.
    private mutating func pass(_ time: Int64, _ slot: Int) {
        guard let connection = connections[slot] else { return }
        let path = air.path(connection.ends[0].side, connection.ends[1].side)
        if path.signal != nil, connection.nextEvent <= time {
            connections[slot]?.nextEvent += connection.interval
            let draw = connections[slot]?.random.next() ?? 0
            if Int(draw % 100) >= path.loss {
                connections[slot]?.heardAt = time
                carry(slot)
            }
        }
        if let connection = connections[slot], connection.heardAt + connection.timeout <= time,
            path.loss > 0 || path.signal == nil
        {
            disconnect(slot, reason: 0x08, from: connection.ends[0].side, tellSelf: true)
        }
    }

    /// One connection event that both hear.
    private mutating func carry(_ slot: Int) {
        guard let connection = connections[slot] else { return }
        connections[slot]?.procedures = []
        for procedure in connection.procedures {
            perform(procedure.opcode, procedure.parameters, connection.ends[procedure.end].side, slot)
        }
        for (end, own) in connection.ends.enumerated() {
            let count = min(own.queued.count, pace ?? own.queued.count)
            guard count > 0, connections[slot]?.serial == connection.serial else { continue }
            connections[slot]?.ends[end].queued.removeFirst(count)
            for packet in own.queued.prefix(count) { deliver(packet, from: own.side, on: slot) }
            let delivery = Delivery(slot: slot, serial: connection.serial, end: end, count: count)
            if sides[own.side].options.completesAtOnce {
                completePackets(delivery)
            } else {
                deliveries.append(delivery)
            }
        }
    }

    /// Whether data of an end pass at a connection event and not at once.
    package func waitsForEvent(_ slot: Int, _ end: Int) -> Bool {
        guard let connection = connections[slot] else { return false }
        let path = air.path(connection.ends[0].side, connection.ends[1].side)
        return path.signal == nil || path.loss > 0 || pace != nil || !connection.ends[end].queued.isEmpty
    }

    /// Keeps a packet that `admit` took for a connection event.
    package mutating func wait(_ packet: [UInt8], _ slot: Int, _ end: Int) {
        catchUp(slot)
        connections[slot]?.ends[end].queued.append(packet)
    }

    /// Does what the other side takes part in, once it is within reach.
    mutating func whenInReach(_ opcode: UInt16, _ parameters: [UInt8], _ side: Int, _ slot: Int) {
        guard let connection = connections[slot], let end = connection.end(of: side) else { return }
        if air.path(connection.ends[0].side, connection.ends[1].side).signal != nil, connection.procedures.isEmpty {
            return perform(opcode, parameters, side, slot)
        }
        // The host's commands have deadlines of their own; whoever asks on and on is not served.
        guard connection.procedures.count < 16 else { return }
        connections[slot]?.procedures.append((end, opcode, parameters))
    }

    /// Events that had nothing to carry have passed, and both have heard one another in them.
    private mutating func catchUp(_ slot: Int) {
        guard let connection = connections[slot] else { return }
        let path = air.path(connection.ends[0].side, connection.ends[1].side)
        if path.signal != nil, path.loss == 0 { connections[slot]?.heardAt = now }
        guard connection.nextEvent <= now else { return }
        let passed = (now - connection.nextEvent) / connection.interval + 1
        connections[slot]?.nextEvent += passed * connection.interval
    }

    /// Changes the air between one moment and the next.
    package mutating func changeAir(_ change: (inout Air) -> Void) {
        for slot in connections.indices { catchUp(slot) }
        change(&air)
    }

    package mutating func changePace(_ packets: Int?) {
        for slot in connections.indices { catchUp(slot) }
        pace = packets
    }
}
