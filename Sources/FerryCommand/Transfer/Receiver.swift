import Ferry

/// The receiving side of one connection.
struct Receiver: Sendable {
    let destination: any Destination
    let report: TransferReport
    /// How long the sender may be silent between two messages.
    let silence: Duration

    /// Takes what comes over one channel. Returns whether the transfer is complete; false when the sender has gone before.
    ///
    /// - Throws: `FerryError` when the connection is lost or the sender out of order, and what writing threw.
    func run(_ channel: TransferChannel) async throws -> Bool {
        var inbox = TransferInbox()
        var writer: (any ItemWriter)?
        while let message = try await channel.next(within: silence) {
            switch try inbox.receive(message) {
            case .welcome: try await channel.send(.welcome(version: TransferMessage.version))
            case .look(let item): writer = try await look(item, &inbox, channel)
            case .begin(let item, let offset):
                report.begin(item, at: offset)
                try await attempt(item, &inbox, &writer, channel) { try $0.begin(at: offset) }
            case .write(let bytes):
                guard let (item, _) = inbox.progress else { continue }
                let line = item.kind == .lines ? bytes + [10] : bytes
                try await attempt(item, &inbox, &writer, channel) { try $0.write(line) }
                report.move(line.count)
            case .finish(let item, let content):
                guard try await attempt(item, &inbox, &writer, channel, { try $0.finish() }) else { continue }
                writer = nil
                report.done(item, content)
                try await channel.send(.done)
            case .alreadyThere(let item, let content):
                report.done(item, content, wasThere: true)
                try await channel.send(.done)
            case .damaged(let item):
                // What is there is worth nothing to a later attempt.
                if let writer { try? await SystemFile.run { try writer.begin(at: 0) } }
                writer = nil
                try await refuse(
                    item, "what arrived is not what was sent: its checksum is wrong. Send it again", channel)
            case .givenUp(let item, let reason):
                writer = nil
                try await refuse(item, reason, channel)
            case .passOver: break
            case .end:
                await channel.finish()
                return true
            }
        }
        return false
    }

    private func refuse(_ item: TransferItem, _ reason: String, _ channel: TransferChannel) async throws {
        report.fail(item.name, reason)
        try await channel.send(.refused(reason))
    }

    /// Looks what is there, and answers.
    private func look(
        _ item: TransferItem, _ inbox: inout TransferInbox, _ channel: TransferChannel
    ) async throws -> (any ItemWriter)? {
        do {
            let destination = destination
            switch try await SystemFile.run({ try destination.open(item) }) {
            case .settled:
                inbox.settle()
                report.done(item, nil)
                try await channel.send(.done)
            case .whole(let content):
                inbox.offer(content, isWhole: true)
                try await channel.send(.have(content, isWhole: true))
            case .part(let content, let writer):
                inbox.offer(content, isWhole: false)
                try await channel.send(.have(content, isWhole: false))
                return writer
            }
        } catch let error as FerryError {
            throw error
        } catch {
            inbox.refuse()
            try await refuse(item, "\(error)", channel)
        }
        return nil
    }

    /// Does something with the item in hand. If that fails the item is refused, and what still comes of it passed over.
    @discardableResult
    private func attempt(
        _ item: TransferItem, _ inbox: inout TransferInbox, _ writer: inout (any ItemWriter)?,
        _ channel: TransferChannel, _ body: @escaping @Sendable (any ItemWriter) throws -> Void
    ) async throws -> Bool {
        guard let current = writer else { return false }
        do {
            try await SystemFile.run { try body(current) }
            return true
        } catch {
            writer = nil
            inbox.refuse()
            try await refuse(item, "it cannot be written: \(error)", channel)
            return false
        }
    }
}
