#if NATS && Records
    public import Ferry
    public import FerryNATS
    public import FerryRecords
    import FoundationEssentials

    /// Commands for peers, through whichever gateway has them: each runs at most once, and is answered once.
    ///
    ///     let configuration = PeerCommands.Configuration(servers: ["nats://localhost:4222"])
    ///     let answer = try await PeerCommands.with(configuration) { commands throws(FerryError) in
    ///         try await commands.call("restart", of: "press-7", within: .seconds(30))
    ///     }
    ///
    /// A command goes down by the stream of messages for peers (``Downlink``), and its answer comes up as a record, by the stream that
    /// gateways publish to. `Documentation/Commands.md` has the bytes and what holds.
    public struct PeerCommands: Sendable {
        /// Which servers and streams.
        public struct Configuration: Sendable, Hashable {
            /// The servers.
            public var servers: NATSConfiguration
            /// The stream of messages for peers, as ``Downlink/Configuration`` has it.
            public var downlink = "ferry-down"
            /// What the subjects of messages for peers begin with.
            public var downlinkPrefix = "ferry.commands"
            /// The stream that gateways publish records to.
            public var stream = "ferry"
            /// What the subjects of records begin with.
            public var prefix = "ferry.records"
            /// How long an answer is awaited after the command's deadline, for its way. Default 10 s.
            public var wayBack = Duration.seconds(10)
            /// How many bytes of a file one command carries. Default 32 KiB; less than the largest record of peers and gateways.
            public var pieceSize = 32 << 10
            /// How many pieces of a file may be without an answer. Default 16.
            public var pieceWindow = 16

            /// - Parameter servers: addresses, such as `nats://localhost:4222`.
            public init(servers: [String]) { self.servers = NATSConfiguration(servers: servers) }
        }

        /// A command that is in the stream.
        public struct Sent: Sendable, Hashable {
            /// The command's identifier.
            public let id: CommandID
            /// The peer's name.
            public let peer: String
            /// The command's name.
            public let name: String
            let deadline: Timestamp
        }

        let configuration: Configuration
        private let publisher: NATSPublisher
        private let names: DownlinkNames
        let calls = CommandCalls()
        private let time = SystemTime()
        private let wallClock: @Sendable () -> Int64

        private init(
            _ configuration: Configuration, _ publisher: NATSPublisher, _ wallClock: @escaping @Sendable () -> Int64
        ) {
            (self.configuration, self.publisher, self.wallClock) = (configuration, publisher, wallClock)
            names = DownlinkNames(prefix: configuration.downlinkPrefix)
        }

        /// Connects, does something with commands, and closes the connection.
        ///
        /// - Parameters:
        ///   - configuration: which servers and streams.
        ///   - wallClock: milliseconds since 1970.
        ///   - body: sends commands.
        /// - Throws: `natsNotFound` where a stream is missing; `natsNotReady`, `natsNoServer`, `natsRefused`, `natsInsecure`, `timedOut`,
        ///   `invalidConfiguration`, `natsFailed`; what `body` throws.
        public static func with<Value: Sendable>(
            _ configuration: Configuration, wallClock: @escaping @Sendable () -> Int64 = Self.systemClock,
            _ body: (PeerCommands) async throws(FerryError) -> Value
        ) async throws(FerryError) -> Value {
            try configuration.check()
            return try await NATSConnection.with(configuration.servers) { connection throws(FerryError) in
                _ = try await connection.state(of: configuration.downlink)
                let place = try await connection.state(of: configuration.stream).lastSequence
                let subject = "\(configuration.prefix).*.\(RecordNames.word(CommandAnswer.stream))"
                let answers = try await connection.messages(of: subject, after: place, in: configuration.stream)
                let publisher = try await NATSPublisher(connection, to: configuration.downlink)
                let commands = PeerCommands(configuration, publisher, wallClock)
                let reader = Task { for await message in answers { commands.hear(message) } }
                defer { reader.cancel() }
                return try await body(commands)
            }
        }

        private func hear(_ message: NATSMessage) {
            guard let peer = message["Ferry-Peer"].flatMap({ RecordNames.name($0) }),
                let answer = try? CommandAnswer(decoding: message.bytes)
            else { return }
            calls.take(answer, from: peer)
        }

        // MARK: Commands

        /// Sends a command, and waits for its answer.
        ///
        /// - Parameters:
        ///   - name: 1 to 64 ASCII letters, digits, dots, hyphens and underscores; the first is no dot.
        ///   - body: the command's body.
        ///   - peer: the peer's name at the gateways.
        ///   - limit: when the peer begins it at the latest; up to 30 days.
        /// - Returns: the answer, for any outcome of the command.
        /// - Throws: `timedOut` when no answer came; as ``send(_:_:to:within:)`` and ``answer(to:)``.
        public func call(
            _ name: String, _ body: [UInt8] = [], of peer: String, within limit: Duration
        ) async throws(FerryError) -> CommandAnswer {
            try await answer(to: try await send(name, body, to: peer, within: limit))
        }

        /// Sends a command; returns when the stream has it. Commands to one peer arrive in the order in which calls return.
        ///
        /// While the stream is full or no server is there, it tries again until the command's deadline.
        ///
        /// - Parameters:
        ///   - name: 1 to 64 ASCII letters, digits, dots, hyphens and underscores; the first is no dot.
        ///   - body: the command's body.
        ///   - peer: the peer's name at the gateways.
        ///   - limit: when the peer begins it at the latest; up to 30 days.
        /// - Throws: `invalidConfiguration` for names and limits out of range; `messageTooLarge`, `natsRefused`, `cancelled`; after the
        ///   deadline why the stream has not taken it. The fate tells whether the stream may have it.
        public func send(
            _ name: String, _ body: [UInt8] = [], to peer: String, within limit: Duration
        ) async throws(FerryError) -> Sent {
            guard limit > .zero, limit <= .seconds(30 * 86_400) else {
                throw FerryError(
                    .invalidConfiguration,
                    "A command's limit is \(limit); it must be more than zero and at most 30 days.",
                    fate: .nothingSent)
            }
            let deadline = time.now + limit
            let moment = wallClock() + Int64(limit / .milliseconds(1))
            let command = try RemoteCommand(name, body, deadline: moment)
            let message = NATSMessage(names.subject(peer, RemoteCommand.stream), bytes: command.encoded)
            // Under its name, so that a repetition is not there twice; the peer takes one identifier once besides.
            let publication = NATSPublisher.Publication(message, id: "\(command.id)")
            try calls.expect(command.id, from: peer, until: deadline + configuration.wayBack, now: time.now)
            do throws(FerryError) { try await publish(publication, until: deadline) } catch {
                calls.forget(command.id)
                throw error
            }
            return Sent(id: command.id, peer: peer, name: name, deadline: deadline)
        }

        private func publish(_ publication: NATSPublisher.Publication, until deadline: Timestamp)
            async throws(FerryError)
        {
            var pause = Duration.milliseconds(100)
            var fate = MessageFate.nothingSent
            while true {
                do throws(FerryError) {
                    _ = try await publisher.publish(publication)
                    return
                } catch {
                    // Refused by the stream, it is not there.
                    if error.code != .natsStreamFull { fate = .mayHaveArrived }
                    guard !error.isHopelessForNATS(creates: false), error.code != .closed, time.now + pause < deadline
                    else {
                        throw FerryError(error.code, error.message, cause: error.cause, fate: fate)
                    }
                    do { try await time.sleep(for: pause) } catch {
                        throw FerryError(.cancelled, "The task was cancelled while it sent a command.", fate: fate)
                    }
                    pause = min(pause * 2, .seconds(2))
                }
            }
        }

        /// Waits for the answer to a command, until ``Configuration/wayBack`` after its deadline. Once for each command.
        ///
        /// - Throws: `timedOut` when no answer has come; `cancelled`.
        public func answer(to sent: Sent) async throws(FerryError) -> CommandAnswer {
            let end = sent.deadline + configuration.wayBack
            if let answer = await calls.answer(to: sent.id, until: end, time) { return answer }
            if Task.isCancelled {
                throw FerryError(
                    .cancelled, "The task was cancelled while it awaited the answer to \(sent.name).",
                    fate: .mayHaveArrived)
            }
            throw FerryError(
                .timedOut,
                "\(sent.peer) has not answered \(sent.name). It is in stream \(configuration.downlink) or at the peer, which may have "
                    + "run it; past its deadline it does not begin it. Look whether a gateway with --downlink reaches the peer.",
                fate: .mayHaveArrived)
        }

        /// The system's clock, in milliseconds since 1970.
        public static let systemClock: @Sendable () -> Int64 = {
            Int64(Date().timeIntervalSince1970 * 1000)
        }
    }

    extension PeerCommands.Configuration {
        func check() throws(FerryError) {
            try RecordNames.check(prefix: prefix, stream: stream)
            try RecordNames.check(prefix: downlinkPrefix, stream: downlink)
            guard (1...1 << 24).contains(pieceSize), (1...1024).contains(pieceWindow) else {
                throw FerryError(
                    .invalidConfiguration,
                    "Pieces of \(pieceSize) bytes, \(pieceWindow) at a time, are out of range; give 1 to 2^24 and 1 to 1024."
                )
            }
            guard wayBack >= .zero, wayBack <= .seconds(86_400) else {
                throw FerryError(.invalidConfiguration, "wayBack is \(wayBack); it must be 0 to a day.")
            }
        }
    }
#endif
