import Ferry
import FerryBluetooth
import Synchronization

// Reading and writing.
extension AdapterRig {
    func longFixedValuesAreReadWhole() async throws {
        let (_, remote) = try await connect()
        let value = try await run("reading") { try await remote.connection.readValue(of: remote.fixed.id) }
        try require(value == Self.fixedValue, "\(Self.fixedValue.count) bytes were published, \(value.count) read")
        try require(witness.get { $0.reads.isEmpty }, "the owner was asked for a fixed value")
    }

    func readsComeAsRequestsWithOffsets() async throws {
        let (published, remote) = try await connect()
        let value = Self.numbered(3, size: 400)
        witness.record.withLock { record in
            record.answerRead = { request in
                request.offset <= value.count ? .success(Array(value[request.offset...])) : .failure(.invalidOffset)
            }
        }
        let read = try await run("reading") { try await remote.connection.readValue(of: remote.free.id) }
        try require(read == value, "the owner answered with \(value.count) bytes, \(read.count) were read")
        let requests = witness.get { $0.reads }
        try require(requests.first?.offset == 0, "the first request's offset is \(requests.first?.offset ?? -1)")
        try require(requests.allSatisfy { $0.characteristic == published.free }, "a request names another value")
        // With a large ATT_MTU one response holds it all.
        guard !deviations.contains(.cachesReads), remote.connection.attMTU <= value.count else { return }
        try require(requests.count > 1, "a value longer than ATT_MTU was read by \(requests.count) request")
    }

    func answeredErrorsArrive() async throws {
        let (_, remote) = try await connect()
        let connection = remote.connection
        let requested = requested(remote).id
        for error in [ATTError.invalidOffset, .unlikelyError, ATTError(rawValue: 0x9A)] {
            witness.record.withLock { record in
                record.answerRead = { _ in .failure(error) }
                record.answerWrite = error
            }
            try await fails("reading", with: .att(error)) { _ = try await connection.readValue(of: remote.free.id) }
            try await fails("writing", with: .att(error)) { try await connection.writeValue([1], to: requested) }
        }
    }

    func permissionsAreEnforced() async throws {
        let (_, remote) = try await connect()
        let connection = remote.connection
        try await fails("reading without permission", with: .att(.readNotPermitted)) {
            _ = try await connection.readValue(of: remote.closed.id)
        }
        try await fails("reading without the property", with: .att(.readNotPermitted)) {
            _ = try await connection.readValue(of: remote.indicated.id)
        }
        try await fails("writing without permission", with: .att(.writeNotPermitted)) {
            try await connection.writeValue([1], to: remote.closed.id)
        }
        try await fails("writing without the property", with: .att(.writeNotPermitted)) {
            try await connection.writeValue([1], to: remote.fixed.id)
        }
        try require(witness.get { $0.reads.isEmpty && $0.requests.isEmpty }, "the owner was asked nevertheless")
    }

    func writesWithResponseAreAnswered() async throws {
        let (published, remote) = try await connect()
        let requested = requested(remote).id
        let expected = self.requested(published)
        try await run("writing") {
            try await remote.connection.writeValue([1, 2, 3], to: requested)
            try await remote.connection.writeValue([], to: requested)
        }
        let parts = witness.get { $0.requests.map(\.parts) }
        try require(
            parts == [
                [WriteRequest.Part(characteristic: expected, offset: 0, value: [1, 2, 3])],
                [WriteRequest.Part(characteristic: expected, offset: 0, value: [])],
            ], "the requests were \(parts)")
    }

    func longWritesComeAsOneRequest() async throws {
        let (_, remote) = try await connect()
        let connection = remote.connection
        let requested = requested(remote).id
        let value = Self.numbered(5, size: deviations.contains(.shorterValues) ? 500 : 512)
        try await run("a long write") { try await connection.writeValue(value, to: requested) }
        let requests = witness.get { $0.requests }
        try require(requests.count == 1, "a long write came as \(requests.count) requests")
        var assembled: [UInt8] = []
        for part in requests[0].parts {
            try require(part.offset == assembled.count, "a part's offset is \(part.offset), not \(assembled.count)")
            assembled += part.value
        }
        try require(assembled == value, "\(value.count) bytes were written, \(assembled.count) came")
        witness.record.withLock { $0.answerWrite = .valueNotAllowed }
        let error: ATTError = deviations.contains(.fewErrors) ? .unlikelyError : .valueNotAllowed
        try await fails("a long write that is refused", with: .att(error)) {
            try await connection.writeValue(value, to: requested)
        }
    }

    func writesWithoutResponseArriveInOrder() async throws {
        let (_, remote) = try await connect()
        var values: [[UInt8]] = []
        var refusals = 0
        // As many as an attribute value has sizes.
        while mustGoOn(values.count, of: 512, refusals) {
            let limit = remote.connection.maximumWriteLength(.withoutResponse)
            let value = Self.numbered(values.count, size: 1 + values.count % limit)
            let readies = connectionWitness.get { $0.readies }
            if try tryWrite(value, to: remote.free, .withoutResponse, remote) {
                values.append(value)
            } else {
                refusals += 1
                try await wait(for: "peripheralIsReadyToWrite after a refusal") {
                    connectionWitness.get { $0.readies } > readies
                }
            }
        }
        do {
            try await wait(for: "\(values.count) writes") { witness.get { $0.writes.count } >= values.count }
        } catch {
            throw ConformanceFailure(
                name, "of \(values.count) writes that were taken \(witness.get { $0.writes.count }) have arrived")
        }
        let writes = witness.get { $0.writes }
        try require(writes == values, "the writes did not arrive whole and in order")
        try require(
            refusals > 0 || deviations.contains(.neverFull), "\(values.count) writes at once met no full queue")
    }

    func oneQueuedWriteWithResponseWaits() async throws {
        let (_, remote) = try await connect()
        try require(
            try tryWrite([1], to: requested(remote), .withResponse, remote), "the first queued write was refused")
        _ = try tryWrite([2], to: requested(remote), .withResponse, remote)
        try await wait(for: "the answer to a queued write") { connectionWitness.get { !$0.results.isEmpty } }
        if connectionWitness.get({ $0.results.count }) == 1, witness.get({ $0.requests.count }) == 1 {
            try await wait(for: "space for the next queued write") {
                (try? tryWrite([2], to: requested(remote), .withResponse, remote)) == true
            }
        }
        try await wait(for: "the second answer") { connectionWitness.get { $0.results.count } == 2 }
        let values = witness.get { $0.requests.flatMap { $0.parts.map(\.value) } }
        try require(values == [[1], [2]], "the requests were \(values)")
        witness.record.withLock { $0.answerWrite = .unlikelyError }
        try await wait(for: "space for a third") {
            (try? tryWrite([3], to: requested(remote), .withResponse, remote)) == true
        }
        try await wait(for: "the refusal") { connectionWitness.get { $0.results.count } == 3 }
        guard case .failure(let error)? = connectionWitness.get({ $0.results.last }), error.code == .att(.unlikelyError)
        else { throw ConformanceFailure(name, "the peer's ATT error did not arrive as the write's result") }
    }

    func wrongWritesThrow() async throws {
        let (_, remote) = try await connect()
        let connection = remote.connection
        let long = [UInt8](repeating: 1, count: connection.maximumWriteLength(.withoutResponse) + 1)
        for type in [WriteType.withResponse, .withoutResponse] {
            try throwsFrom(.valueTooLong) { () throws(BluetoothError) in
                try self.tryWrite(long, to: remote.free, type, remote)
            }
            try throwsFrom(.notSupported) { () throws(BluetoothError) in
                try self.tryWrite([1], to: remote.fixed, type, remote)
            }
            let unknown = RemoteCharacteristic(
                id: AttributeID(rawValue: .max), uuid: Self.free, properties: .write)
            try throwsFrom(.unknownAttribute) { () throws(BluetoothError) in
                try self.tryWrite([1], to: unknown, type, remote)
            }
        }
        try await fails("writing 513 bytes", with: .valueTooLong) {
            try await connection.writeValue([UInt8](repeating: 1, count: 513), to: remote.free.id)
        }
        try await fails("reading an unknown attribute", with: .unknownAttribute) {
            _ = try await connection.readValue(of: AttributeID(rawValue: .max))
        }
    }

    /// Expects a call that does not suspend to throw.
    func throwsFrom(_ code: BluetoothError.Code, _ body: () throws(BluetoothError) -> Bool) throws {
        do throws(BluetoothError) {
            _ = try body()
        } catch {
            return try require(error.code == code, "\(error) was thrown, not \(code)")
        }
        throw ConformanceFailure(name, "\(code) was not thrown")
    }
}
