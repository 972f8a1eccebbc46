import Ferry

/// The sender of a transfer as a value: which messages go out, and what to do with each answer. The caller does the reading and
/// sending.
struct TransferOutbox {
    /// A step for the caller to carry out.
    enum Action: Equatable {
        /// The receiver is there: name the first item.
        case start
        /// Send the content of the item's first `count` bytes, or of fewer where it is shorter, by ``prove(_:)``.
        case prove(count: UInt64)
        /// Compare what the receiver has with the item, and answer by ``decide(_:_:)`` or ``giveUp(_:)``.
        case compare(TransferContent, isWhole: Bool)
        /// The item is on the receiver's disk.
        case done(wasThere: Bool)
        /// The receiver does not take the item.
        case refused(String)
        /// The receiver does not take the item, of which more was to be sent: stop, and say so by ``giveUp(_:)``.
        case stop(String)
    }

    private enum State {
        case new, greeting, idle
        /// An item was named; `hasProved` when the receiver has had its proof, of which there is one an item.
        case named(TransferItem, hasProved: Bool)
        case proving(TransferItem)
        case comparing, sending
        /// All of it was sent, or nothing had to be, and the receiver's word is missing.
        case ending(wasThere: Bool)
        case givingUp
        /// Refused while it was being sent.
        case stopped
        case ended
    }

    private var state = State.new

    /// Opens the transfer.
    mutating func greet() -> TransferMessage {
        state = .greeting
        return .hello(version: TransferMessage.version, proves: true)
    }

    /// Names the next item.
    mutating func name(_ item: TransferItem) -> TransferMessage {
        state = .named(item, hasProved: false)
        return .item(item)
    }

    /// The content of the item's first bytes, as far as there are as many as the receiver has asked for.
    mutating func prove(_ content: TransferContent) -> TransferMessage {
        if case .proving(let item) = state { state = .named(item, hasProved: true) }
        return .end(content)
    }

    /// Answers what the receiver has.
    ///
    /// - Parameters:
    ///   - plan: what follows from it.
    ///   - there: what it has.
    mutating func decide(_ plan: TransferPlan, _ there: TransferContent) -> TransferMessage {
        switch plan {
        case .send(let offset):
            state = .sending
            return .go(offset: offset)
        case .confirm:
            state = .ending(wasThere: true)
            return .end(there)
        case .conflict:
            return giveUp("another file of that name is there already; --overwrite at the receiver replaces it")
        }
    }

    /// All of the item was sent.
    mutating func finish(_ content: TransferContent) -> TransferMessage {
        if case .sending = state { state = .ending(wasThere: false) }
        return .end(content)
    }

    /// The item is not sent, or not to its end. The receiver answers by `refused`, unless it has done so.
    mutating func giveUp(_ reason: String) -> TransferMessage {
        if case .stopped = state { state = .idle } else { state = .givingUp }
        return .giveUp(reason)
    }

    /// Nothing else comes.
    mutating func leave() -> TransferMessage {
        state = .ended
        return .goodbye
    }

    /// What to do with a message.
    ///
    /// - Throws: `malformedStream` for a message out of its order, `incompatiblePeer` for another version.
    mutating func receive(_ message: TransferMessage) throws(FerryError) -> Action {
        switch (state, message) {
        case (.greeting, .welcome(let version)):
            guard version == TransferMessage.version else {
                throw FerryError(
                    .incompatiblePeer,
                    "The receiver speaks version \(version) of the protocol; this is version \(TransferMessage.version). "
                        + "Install the same ferry on both sides.")
            }
            state = .idle
            return .start
        case (.greeting, .refused(let reason)):
            throw FerryError(.noPlace, "The receiver takes nothing at present: \(reason)")
        case (.named(let item, hasProved: false), .prove(let count)) where item.kind == .file:
            state = .proving(item)
            return .prove(count: count)
        case (.named(let item, _), .have(let there, let isWhole)) where item.kind != .folder:
            state = .comparing
            return .compare(there, isWhole: isWhole)
        case (.named(let item, hasProved: false), .done) where item.kind == .folder:
            state = .idle
            return .done(wasThere: false)
        case (.named, .refused(let reason)), (.ending, .refused(let reason)), (.givingUp, .refused(let reason)):
            state = .idle
            return .refused(reason)
        case (.ending(let wasThere), .done):
            state = .idle
            return .done(wasThere: wasThere)
        case (.sending, .refused(let reason)):
            state = .stopped
            return .stop(reason)
        default: throw .noTransfer("\(message.word) came \(place)")
        }
    }

    /// For errors.
    private var place: String {
        switch state {
        case .new, .greeting: "where the greeting was to be answered"
        case .idle, .comparing, .proving: "where the receiver was asked nothing"
        case .named: "where an item was to be answered"
        case .sending: "while an item was sent"
        case .ending: "where the end of an item was to be answered"
        case .givingUp: "where a refusal was expected"
        case .stopped: "after an item was refused"
        case .ended: "after the end"
        }
    }
}

/// What a sender does about what the receiver has.
enum TransferPlan: Equatable {
    /// Send from this offset on.
    case send(from: UInt64)
    /// Say that it is complete.
    case confirm
    /// Another file stands in its place.
    case conflict

    /// - Parameters:
    ///   - there: what the receiver has.
    ///   - own: the content of the sender's first `there.count` bytes; nil when it has fewer.
    ///   - size: how many the sender has; nil for a stream.
    init(there: TransferContent, isWhole: Bool, own: TransferContent?, size: UInt64?) {
        let isSame = there == own
        if isWhole {
            self = isSame && there.count == size ? .confirm : .conflict
        } else {
            self = .send(from: isSame ? there.count : 0)
        }
    }
}
