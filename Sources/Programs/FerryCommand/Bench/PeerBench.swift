import Ferry
import FerryBluetooth
import FerryLab
import FerrySimulator

/// Measures with a peer's own throughput service, as its client.
struct PeerBench: Sendable {
    let connection: any PeripheralConnection
    let events: VisitEvents
    let time: any TimeSource

    /// How long a peer may take for its last answer.
    private static let patience = Duration.seconds(30)
    /// How long a peer may send.
    private static let longest = Duration.seconds(600)

    private struct Found {
        let kind: PeerService
        let sink: AttributeID
        let source: AttributeID?
        /// Whether writes need no answer.
        let takesCommands: Bool

        /// The characteristic that an answer comes by.
        func answers() throws(FerryError) -> AttributeID {
            guard let source else { throw FerryError(.peerNotFound, "The peer cannot answer.") }
            return source
        }
    }

    /// Measures in every direction that is wanted and that the peer offers.
    ///
    /// - Parameters:
    ///   - wanted: the directions; `nil` for the service's usual ones.
    ///   - seconds: how long to send in each; a peer that sends ends when it likes.
    /// - Throws: `peerNotFound` when it has none of the services; what the connection throws.
    func run(_ wanted: [DirectionChoice]?, seconds: Double) async throws -> [PeerOutcome] {
        let found = try await find()
        let directions = wanted.map { found.kind.directions.filter($0.contains) } ?? found.kind.usual
        guard !directions.isEmpty else {
            throw FerryError(
                .invalidConfiguration,
                "The peer's service (\(found.kind.rawValue)) measures "
                    + "\(found.kind.directions.map(\.rawValue).joined(separator: " and ")) only. Change --direction.")
        }
        var outcomes: [PeerOutcome] = []
        for direction in directions {
            switch (found.kind, direction) {
            case (.nordic, _): outcomes.append(try await nordic(found, seconds))
            case (.bumble, .write): outcomes.append(try await bumble(found, seconds))
            case (.bumble, .notify): outcomes.append(try await bumbleSends(found))
            case (.tput, .write): outcomes.append(try await write(found, seconds))
            case (.tput, .notify): outcomes.append(try await notify(found, seconds))
            }
        }
        return outcomes
    }

    private func find() async throws -> Found {
        for service in try await connection.discoverServices(nil) {
            guard let kind = PeerService.allCases.first(where: { $0.service == service.uuid }) else { continue }
            let all = try await connection.discoverCharacteristics(nil, of: service.id)
            guard let sink = all.first(where: { $0.uuid == kind.sink }) else { continue }
            let source = all.first { $0.uuid == kind.source }
            guard source != nil || kind.source == nil else { continue }
            return Found(
                kind: kind, sink: sink.id, source: source?.id,
                takesCommands: sink.properties.contains(.writeWithoutResponse))
        }
        throw FerryError(
            .peerNotFound,
            "The peer has no throughput service that is known: Nordic's, Zephyr's ble_gatt_tput, or bumble-bench's "
                + "over GATT. Start one of them there, or ferry bench --serve.")
    }

    // MARK: The services

    private func nordic(_ found: Found, _ seconds: Double) async throws -> PeerOutcome {
        try await put([0], to: found)
        let value = [UInt8](repeating: 0x55, count: valueLength)
        let start = time.now
        while time.now < start + .seconds(seconds) { try await put(value, to: found) }
        // The answer comes after the writes.
        let metrics = try await connection.readValue(of: found.sink)
        guard metrics.count >= 12 else {
            throw FerryError(.decodingFailed, "The peer's metrics have \(metrics.count) bytes, not 12.")
        }
        func number(_ offset: Int) -> Int {
            (0..<4).reduce(0) { $0 | Int(metrics[offset + $1]) << (8 * $1) }
        }
        return outcome(
            found, .write, value.count, bytes: number(4), from: start, byPeer: Double(number(8)) / 1_000)
    }

    private func bumble(_ found: Found, _ seconds: Double) async throws -> PeerOutcome {
        let source = try found.answers()
        try await connection.setSubscription(.notify, to: source)
        try await put([0], to: found)
        let size = max(10, valueLength)
        let start = time.now
        var number: UInt32 = 0
        var isLast = false
        repeat {
            let passed = time.now - start
            isLast = passed >= .seconds(seconds)
            // The number, and microseconds since the first packet, which the peer takes the jitter from.
            var packet: [UInt8] = [1, isLast ? 1 : 0]
            for word in [number, UInt32(truncatingIfNeeded: Int64(passed / .microseconds(1)))] {
                for shift in [0, 8, 16, 24] as [UInt32] { packet.append(UInt8(truncatingIfNeeded: word >> shift)) }
            }
            packet += [UInt8](repeating: 0, count: size - packet.count)
            try await put(packet, to: found)
            number += 1
        } while !isLast
        try await next { $0.characteristic == source && $0.value.first == 2 }
        return outcome(found, .write, size, bytes: Int(number) * size, from: start)
    }

    /// Takes what bumble-bench sends, and answers the last packet.
    private func bumbleSends(_ found: Found) async throws -> PeerOutcome {
        guard let source = found.source else { throw FerryError(.peerNotFound, "The peer does not notify.") }
        try await connection.setSubscription(.notify, to: source)
        var (start, bytes, size) = (time.now, 0, 0)
        let timer = time.schedule(at: time.now + Self.longest) { [events] in events.stop() }
        defer { timer.cancel() }
        for await update in events.updates where update.characteristic == source {
            switch update.value.first {
            case 0: (start, bytes, size) = (update.time, 0, 0)
            case 1:
                bytes += update.value.count
                size = max(size, update.value.count)
                guard update.value.count >= 6, update.value[1] & 1 == 1 else { continue }
                let result = outcome(found, .notify, size, bytes: bytes, from: start, to: update.time)
                try await put([2] + update.value[1..<6], to: found)
                return result
            default: continue
            }
        }
        throw events.reason.map { FerryError(.disconnected, $0.message) }
            ?? FerryError(.timedOut, "The peer has not sent its last packet within \(Self.longest).")
    }

    private func write(_ found: Found, _ seconds: Double) async throws -> PeerOutcome {
        let source = try found.answers()
        let value = [UInt8](repeating: 0x55, count: valueLength)
        let start = time.now
        var count = 0
        while time.now < start + .seconds(seconds) {
            try await put(value, to: found)
            count += 1
        }
        // A request's answer comes after the writes. Discoveries may be answered here, from the cache.
        try await connection.setSubscription(nil, to: source)
        return outcome(found, .write, value.count, bytes: count * value.count, from: start)
    }

    private func notify(_ found: Found, _ seconds: Double) async throws -> PeerOutcome {
        guard let source = found.source else { throw FerryError(.peerNotFound, "The peer does not notify.") }
        try await connection.setSubscription(.notify, to: source)
        var first: Timestamp?
        var (last, bytes, size) = (time.now, 0, 0)
        let timer = time.schedule(at: time.now + .seconds(seconds) + Self.patience) { [events] in events.stop() }
        defer { timer.cancel() }
        for await update in events.updates where update.characteristic == source {
            // The first one begins the time, and does not count.
            guard let start = first else {
                first = update.time
                continue
            }
            bytes += update.value.count
            size = max(size, update.value.count)
            last = update.time
            if update.time >= start + .seconds(seconds) { break }
        }
        try await connection.setSubscription(nil, to: source)
        guard let first, bytes > 0 else {
            throw events.reason.map { FerryError(.disconnected, $0.message) }
                ?? FerryError(.timedOut, "The peer has notified nothing.")
        }
        return outcome(found, .notify, size, bytes: bytes, from: first, to: last)
    }

    // MARK: Helpers

    private var valueLength: Int { connection.maximumWriteLength(.withoutResponse) }

    /// Queues a write, waiting for a place; or, where the peer takes no others, for the answer.
    private func put(_ value: [UInt8], to found: Found) async throws {
        guard found.takesCommands else { return try await connection.writeValue(value, to: found.sink) }
        while !(try connection.tryWriteValue(value.span.bytes, to: found.sink, type: .withoutResponse)) {
            try await events.readyToWrite(time)
        }
    }

    private func next(_ isWanted: (VisitEvents.Update) -> Bool) async throws {
        let timer = time.schedule(at: time.now + Self.patience) { [events] in events.stop() }
        defer { timer.cancel() }
        for await update in events.updates where isWanted(update) { return }
        throw events.reason.map { FerryError(.disconnected, $0.message) }
            ?? FerryError(.timedOut, "The peer has not answered within \(Self.patience).")
    }

    private func outcome(
        _ found: Found, _ direction: DirectionChoice, _ length: Int, bytes: Int, from start: Timestamp,
        to end: Timestamp? = nil, byPeer: Double? = nil
    ) -> PeerOutcome {
        let seconds = ((end ?? time.now) - start) / .seconds(1)
        return PeerOutcome(
            service: found.kind, direction: direction, attMTU: connection.attMTU, valueLength: length,
            isAcknowledged: direction == .write && !found.takesCommands, bytes: bytes,
            seconds: seconds, goodput: seconds > 0 ? Double(bytes * 8) / seconds / 1_000 : 0, byPeer: byPeer)
    }
}
