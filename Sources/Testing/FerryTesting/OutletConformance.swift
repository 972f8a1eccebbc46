public import FerryFleet

/// Checks an `Outlet` against its contract, with a server that the rig stops, halts and fills, in any test library:
///
/// ```swift
/// @Test func conforms() async throws { try await OutletConformance(rig).check() }
/// ```
///
/// Each check opens an outlet, and closes it at its end.
public struct OutletConformance: Sendable {
    /// A message as a consumer at the server had it.
    public struct Delivery: Sendable, Hashable {
        /// Where it was published to: the subject or topic.
        public let address: String
        /// The message's key.
        public let key: String
        /// The message's bytes.
        public let bytes: [UInt8]

        /// Makes a delivery.
        public init(address: String, key: String, bytes: [UInt8]) {
            self.address = address
            self.key = key
            self.bytes = bytes
        }
    }

    /// An outlet and its server.
    public struct Rig: Sendable {
        /// Opens an outlet to the server.
        public var open: @Sendable () async throws -> any Outlet
        /// Returns all that consumers have had since the rig was made, in the server's order.
        public var deliveries: @Sendable () async throws -> [Delivery]
        /// Ends the server at once, as a crash does.
        public var kill: @Sendable () async throws -> Void
        /// Starts the server again at its address.
        public var start: @Sendable () async throws -> Void
        /// Halts the server: it answers nothing until ``resume``.
        public var halt: @Sendable () async throws -> Void
        /// Lets a halted server go on.
        public var resume: @Sendable () async throws -> Void
        /// Makes the outlet or its server full, so that one of 64 messages in lanes of their own is answered with `full`.
        public var fill: @Sendable () async throws -> Void
        /// Makes room again.
        public var drain: @Sendable () async throws -> Void
        /// A message that the server never takes, such as one that is too large.
        public var refused: OutletMessage
        /// The longest wait for an answer or a delivery, more than the outlet's own timeout.
        public var timeout: Duration

        /// Makes a rig.
        public init(
            open: @escaping @Sendable () async throws -> any Outlet,
            deliveries: @escaping @Sendable () async throws -> [Delivery],
            kill: @escaping @Sendable () async throws -> Void, start: @escaping @Sendable () async throws -> Void,
            halt: @escaping @Sendable () async throws -> Void, resume: @escaping @Sendable () async throws -> Void,
            fill: @escaping @Sendable () async throws -> Void, drain: @escaping @Sendable () async throws -> Void,
            refused: OutletMessage, timeout: Duration = .seconds(60)
        ) {
            (self.open, self.deliveries) = (open, deliveries)
            (self.kill, self.start) = (kill, start)
            (self.halt, self.resume) = (halt, resume)
            (self.fill, self.drain) = (fill, drain)
            (self.refused, self.timeout) = (refused, timeout)
        }
    }

    private let rig: Rig
    private let clock = ContinuousClock()

    /// Makes the kit.
    public init(_ rig: Rig) { self.rig = rig }

    /// Runs every check.
    ///
    /// - Throws: ``ConformanceFailure`` with the requirement that the outlet does not meet; what the rig throws.
    public func check() async throws {
        try await checkOrder()
        try await checkNames()
        try await checkRepetition()
        try await checkRefusal()
        try await checkLoss()
        try await checkSilence()
        try await checkFull()
        try await checkClosing()
    }

    /// Lanes side by side: each message once, whole, and in its lane's order.
    public func checkOrder() async throws {
        let lanes = ["a", "b", "c"].map { name in (0..<32).map { message("order-\(name)", "s", $0) } }
        try await use { outlet in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for lane in lanes {
                    group.addTask { for message in lane { try await taken(message, outlet, once: true) } }
                }
                try await group.waitForAll()
            }
            for lane in lanes {
                try await expect(lane, "each message of a lane arrives once, whole and in order", once: true)
            }
        }
    }

    /// Any text names a lane, and two lanes never share an address.
    public func checkNames() async throws {
        let names = ["", " ", "a/b", "a.b", "+", "#", "*", ">", "%", "%25", "$SYS", "ä", "🛳", "a\u{0}b", "A", "a"]
        try await use { outlet in
            var addresses: [String: String] = [:]
            for (index, name) in names.enumerated() {
                let messages = [message("names", name, index), message("names\(index)-", "n\(name)", index)]
                for message in messages {
                    try await taken(message, outlet, once: true)
                    let address = try await arrived(message).address
                    let other = addresses.updateValue(message.key, forKey: address)
                    try require(
                        other == nil, "two lanes have two addresses",
                        "\(message.key) and \(other ?? "") are both at \(address)")
                }
            }
        }
    }

    /// A message that is published again keeps its key.
    public func checkRepetition() async throws {
        let first = message("again", "s", 1)
        try await use { outlet in
            try await taken(first, outlet, once: true)
            try await taken(first, outlet, once: true)
            try await expect([first], "a repetition is known by its key")
        }
    }

    /// A refused message does not stop those after it.
    public func checkRefusal() async throws {
        try await use { outlet in
            let answer = try await publish(rig.refused, outlet)
            guard case .refused = answer else {
                throw ConformanceFailure("what can never be taken is refused", "the answer was \(answer)")
            }
            let next = OutletMessage(rig.refused.lane, key: "refusal/next", bytes: [1])
            try await taken(next, outlet)
            _ = try await arrived(next)
        }
    }

    /// The server is killed between two messages: nothing is taken without it, and afterwards everything is.
    public func checkLoss() async throws {
        let messages = (0..<4).map { message("loss", "s", $0) }
        try await use { outlet in
            try await taken(messages[0], outlet, once: true)
            _ = try await arrived(messages[0])
            try await rig.kill()
            let answer = try await publish(messages[1], outlet)
            try require(answer.isToRepeat, "without a server a message is to be repeated", "the answer was \(answer)")
            try await rig.start()
            for message in messages.dropFirst() { try await taken(message, outlet) }
            try await expect(messages, "after a loss of the connection a lane goes on in order")
        }
    }

    /// The server halts: no answer is invented, and a late one does no harm.
    public func checkSilence() async throws {
        let messages = (0..<4).map { message("silence", "s", $0) }
        try await use { outlet in
            try await taken(messages[0], outlet, once: true)
            try await rig.halt()
            let answer: OutletAnswer
            do { answer = try await publish(messages[1], outlet) } catch {
                try await rig.resume()
                throw error
            }
            try await rig.resume()
            try require(
                answer.isToRepeat, "a message without an answer is to be repeated", "the answer was \(answer)")
            for message in messages.dropFirst() { try await taken(message, outlet) }
            try await expect(messages, "after late answers a lane goes on in order")
        }
    }

    /// Without room, messages are said not to be taken, and later they are.
    public func checkFull() async throws {
        let messages = (0..<64).map { message("full-\($0)", "s", 0) }
        try await use { outlet in
            try await rig.fill()
            let answers = try await withThrowingTaskGroup(of: OutletAnswer.self) { group in
                for message in messages { group.addTask { try await publish(message, outlet) } }
                return try await group.reduce(into: [OutletAnswer]()) { $0.append($1) }
            }
            try await rig.drain()
            let isFull = answers.contains { if case .full = $0 { true } else { false } }
            try require(isFull, "without room the answer is full", "the answers were \(answers)")
            let refused = answers.contains { if case .refused = $0 { true } else { false } }
            try require(!refused, "without room a message is not refused for ever", "the answers were \(answers)")
            for message in messages { try await taken(message, outlet) }
            for message in messages { _ = try await arrived(message) }
        }
    }

    /// A closed outlet takes nothing, and can be closed again.
    public func checkClosing() async throws {
        let outlet = try await rig.open()
        try await taken(message("closing", "s", 0), outlet, once: true)
        await outlet.close()
        await outlet.close()
        let answer = try await publish(message("closing", "s", 1), outlet)
        try require(answer.isToRepeat, "a closed outlet takes nothing", "the answer was \(answer)")
    }

    // MARK: Parts of checks

    private func use(_ body: (any Outlet) async throws -> Void) async throws {
        let outlet = try await rig.open()
        do { try await body(outlet) } catch {
            await outlet.close()
            throw error
        }
        await outlet.close()
    }

    private func message(_ sender: String, _ stream: String, _ number: Int) -> OutletMessage {
        // Every value of a byte is in some message; the first message is empty.
        let bytes = (0..<(number * 9)).map { UInt8(truncatingIfNeeded: $0) }
        return OutletMessage(
            .init(sender: sender, stream: stream),
            key: "\(OutletAddress.level(sender))/\(OutletAddress.level(stream))/\(number)",
            fields: [.init("Ferry-Peer", OutletAddress.level(sender))], bytes: bytes)
    }

    /// The answer, which comes within the rig's timeout.
    private func publish(_ message: OutletMessage, _ outlet: any Outlet) async throws -> OutletAnswer {
        let start = clock.now
        let answer = await outlet.publish(message)
        let duration = clock.now - start
        try require(duration < rig.timeout, "each message is answered in time", "\(message.key) took \(duration)")
        return answer
    }

    /// Repeats a message until it is taken.
    ///
    /// - Parameter once: whether the first answer must be `taken`.
    private func taken(_ message: OutletMessage, _ outlet: any Outlet, once: Bool = false) async throws {
        let end = clock.now + rig.timeout
        while true {
            let answer = try await publish(message, outlet)
            if answer.isTaken { return }
            try require(
                !once && answer.isToRepeat && clock.now < end, "what can be taken is taken",
                "\(message.key) was answered with \(answer)")
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// The first delivery of a message.
    private func arrived(_ message: OutletMessage) async throws -> Delivery {
        let end = clock.now + rig.timeout
        while true {
            if let found = try await rig.deliveries().first(where: { $0.key == message.key }) {
                try require(
                    found.bytes == message.bytes, "a message arrives whole",
                    "\(message.key) has \(found.bytes.count) of \(message.bytes.count) bytes, or others")
                return found
            }
            try require(clock.now < end, "a taken message arrives", "\(message.key) has not")
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Waits for the messages of a lane, and compares the order of their first deliveries.
    private func expect(_ messages: [OutletMessage], _ requirement: String, once: Bool = false) async throws {
        for message in messages { _ = try await arrived(message) }
        let keys = messages.map(\.key)
        let wanted = Set(keys)
        let found = try await rig.deliveries().map(\.key).filter(wanted.contains)
        var seen: Set<String> = []
        let firsts = found.filter { seen.insert($0).inserted }
        try require(firsts == keys, requirement, "the order was \(firsts)")
        try require(!once || found == keys, requirement, "there were doubles: \(found)")
    }
}
