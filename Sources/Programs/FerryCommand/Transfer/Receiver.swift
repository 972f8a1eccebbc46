import Ferry

/// The receiving side of one connection.
struct Receiver: Sendable {
    let destination: any Destination
    let report: TransferReport
    /// How long the sender may be silent between two messages.
    let silence: Duration

    /// How long a sender may take to its first message: a connection that says nothing holds up the next sender no longer.
    var greeting = Duration.seconds(10)

    /// The sender has said nothing at all, or not who it is.
    struct Silence: Error, CustomStringConvertible {
        let description: String

        init(for greeting: Duration) {
            description =
                "A connection has said nothing for \(TransferReport.time(greeting / .seconds(1))). It is closed."
        }

        init(_ refusal: FerryError) { description = "A connection is refused. \(refusal.message)" }
    }

    /// Takes the items of one channel. Returns whether the transfer is complete; false when the sender has gone before.
    ///
    /// - Parameters:
    ///   - onGreeting: called when the sender has greeted. It throws `noPlace` where the sender is to come again later, which is
    ///     told to it.
    ///   - onContent: called when the sender has brought something.
    /// - Throws: `Silence`; `FerryError` when the connection is lost or the sender out of order, and what writing threw.
    func run(
        _ channel: TransferChannel, onGreeting: (PeerIdentity) throws(FerryError) -> Void = { _ in },
        onContent: () -> Void = {}
    ) async throws -> Bool {
        var inbox = TransferInbox()
        var found: Found?
        var hasBegun = false
        while let message = try await next(of: channel, hasBegun) {
            hasBegun = true
            let action = try inbox.receive(message)
            switch action {
            case .write, .finish, .alreadyThere: onContent()
            default: break
            }
            switch action {
            case .welcome:
                do throws(FerryError) { try onGreeting(channel.peer) } catch {
                    try await channel.send(.refused(error.message))
                    await channel.finish()
                    throw error
                }
                try await channel.send(.welcome(version: TransferMessage.version))
            case .look(let item):
                found = nil
                found = try await look(item, &inbox, channel)
            case .compare(let item, let content, let isWhole):
                try await compare(item, content, isWhole: isWhole, &found, &inbox, channel)
            case .begin(let item, let offset):
                report.begin(item, at: offset)
                try await attempt(item, &inbox, &found, channel) { try $0.begin(at: offset) }
            case .write(let bytes):
                guard let (item, _) = inbox.progress else { continue }
                let line = item.kind == .lines ? bytes + [10] : bytes
                try await attempt(item, &inbox, &found, channel) { try $0.write(line) }
                report.move(line.count)
            case .finish(let item, let content):
                guard try await attempt(item, &inbox, &found, channel, { try $0.finish() }) else { continue }
                found = nil
                report.done(item, content)
                try await channel.send(.done)
            case .alreadyThere(let item, let content):
                guard case .whole(let file) = found else { continue }
                found = nil
                do { try await SystemFile.run { try file.keep() } } catch {
                    try await refuse(item, "it is there, but not surely on disk: \(error)", channel)
                    continue
                }
                report.done(item, content, wasThere: true)
                try await channel.send(.done)
            case .damaged(let item):
                if case .part(let writer) = found { try await SystemFile.run { writer.discard() } }
                found = nil
                try await refuse(
                    item, "it did not arrive as it was sent: its checksum is wrong. Send it again", channel)
            case .givenUp(let item, let reason):
                found = nil
                try await refuse(item, reason, channel)
            case .passOver: break
            case .end:
                await channel.finish()
                return true
            }
        }
        return false
    }

    private func next(of channel: TransferChannel, _ hasBegun: Bool) async throws -> TransferMessage? {
        guard !hasBegun else { return try await channel.next(within: silence) }
        do throws(FerryError) {
            return try await channel.next(within: greeting)
        } catch {
            if error.isOfHandshake { throw Silence(error) }
            guard error.code == .timedOut else { throw error }
            throw Silence(for: greeting)
        }
    }

    private func refuse(_ item: TransferItem, _ reason: String, _ channel: TransferChannel) async throws {
        report.fail(item.name, reason)
        try await channel.send(.refused(reason))
    }

    /// The place of the item in hand.
    private enum Found: Sendable {
        case whole(any StoredFile)
        case part(any ItemWriter)
    }

    /// Looks up the item and answers. A sender is told of content that it has proved to have.
    private func look(
        _ item: TransferItem, _ inbox: inout TransferInbox, _ channel: TransferChannel
    ) async throws -> Found? {
        let nothing = TransferContent()
        do {
            let destination = destination
            switch try await SystemFile.run({ try destination.open(item) }) {
            case .settled:
                inbox.settle()
                report.done(item, nil)
                try await channel.send(.done)
                return nil
            case .whole(let file):
                guard let size = item.size, inbox.senderProves else {
                    inbox.offer(nothing, isWhole: false)
                    try await channel.send(.have(nothing, isWhole: false))
                    return .part(ComparingWriter(file))
                }
                // The question names the sender's length, so that it tells nothing of the file's.
                inbox.ask(count: size, isWhole: true)
                try await channel.send(.prove(count: size))
                return .whole(file)
            case .part(let count, let writer):
                // A part that is longer than the item is of another one.
                if let size = item.size, count > 0, count <= size, inbox.senderProves {
                    inbox.ask(count: count, isWhole: false)
                    try await channel.send(.prove(count: count))
                } else {
                    inbox.offer(nothing, isWhole: false)
                    try await channel.send(.have(nothing, isWhole: false))
                }
                return .part(writer)
            }
        } catch let error as FerryError {
            throw error
        } catch {
            inbox.refuse()
            try await refuse(item, "\(error)", channel)
        }
        return nil
    }

    /// Compares the content on disk with the sender's, and answers.
    private func compare(
        _ item: TransferItem, _ claim: TransferContent, isWhole: Bool, _ found: inout Found?,
        _ inbox: inout TransferInbox, _ channel: TransferChannel
    ) async throws {
        let here = found
        do {
            let content = try await SystemFile.run { () throws -> TransferContent? in
                switch here {
                case .whole(let file): try file.content()
                case .part(let writer): try writer.content()
                case nil: nil
                }
            }
            if content == claim {
                inbox.offer(claim, isWhole: isWhole)
                try await channel.send(.have(claim, isWhole: isWhole))
            } else if isWhole {
                throw FolderDestination.isTaken
            } else {
                inbox.offer(TransferContent(), isWhole: false)
                try await channel.send(.have(TransferContent(), isWhole: false))
            }
        } catch let error as FerryError {
            throw error
        } catch {
            found = nil
            inbox.refuse()
            try await refuse(item, "\(error)", channel)
        }
    }

    /// Does something with the item in hand. If that fails the item is refused, and the rest of it passed over.
    @discardableResult
    private func attempt(
        _ item: TransferItem, _ inbox: inout TransferInbox, _ found: inout Found?, _ channel: TransferChannel,
        _ body: @escaping @Sendable (any ItemWriter) throws -> Void
    ) async throws -> Bool {
        guard case .part(let writer) = found else { return false }
        do {
            try await SystemFile.run { try body(writer) }
            return true
        } catch {
            found = nil
            inbox.refuse()
            let reason = error is Refusal ? "\(error)" : "it cannot be written: \(error)"
            try await refuse(item, reason, channel)
            return false
        }
    }
}
