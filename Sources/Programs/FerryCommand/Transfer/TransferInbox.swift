import CFerryChecksum
import Ferry

/// The receiver of a transfer as a value: what to do with each message that comes. The caller does the reading and writing.
struct TransferInbox {
    /// A step for the caller to carry out.
    enum Action: Equatable {
        /// Send a welcome.
        case welcome
        /// Look up the item, and call ``offer(_:isWhole:)``, ``ask(count:isWhole:)``, ``settle()`` or
        /// ``refuse()``.
        case look(TransferItem)
        /// Compare the content on disk with the sender's, and call ``offer(_:isWhole:)`` or ``refuse()``.
        case compare(TransferItem, TransferContent, isWhole: Bool)
        /// Truncate the part to `at` bytes; the data follows.
        case begin(TransferItem, at: UInt64)
        case write(ArraySlice<UInt8>)
        /// All is there and its checksum right: keep it.
        case finish(TransferItem, TransferContent)
        /// The content here is the one that would have come.
        case alreadyThere(TransferItem, TransferContent)
        /// The content that came is not the one that was sent.
        case damaged(TransferItem)
        /// The sender does not go on with it.
        case givenUp(TransferItem, String)
        /// The item was refused, and this still comes of it: do nothing.
        case passOver
        /// The transfer is complete.
        case end
    }

    fileprivate enum State {
        case new, idle
        case looking(TransferItem)
        case asked(TransferItem, count: UInt64, isWhole: Bool)
        case comparing(TransferItem)
        case offered(TransferItem, TransferContent, isWhole: Bool)
        case receiving(TransferItem, TransferContent)
        case refused
        case ended
    }

    private var state = State.new
    /// Whether the sender answers `prove`, as its greeting has said.
    private(set) var senderProves = false

    /// The item in hand and how much of it there is.
    var progress: (item: TransferItem, count: UInt64)? {
        if case .receiving(let item, let content) = state { (item, content.count) } else { nil }
    }

    var hasEnded: Bool { if case .ended = state { true } else { false } }

    /// What to do with a message.
    ///
    /// - Throws: `malformedStream` for a message out of its order, `incompatiblePeer` for another version.
    mutating func receive(_ message: TransferMessage) throws(FerryError) -> Action {
        switch (state, message) {
        case (.new, .hello(let version, let proves)):
            guard version == TransferMessage.version else {
                throw FerryError(
                    .incompatiblePeer,
                    "The sender speaks version \(version) of the protocol; this is version \(TransferMessage.version). "
                        + "Install the same ferry on both sides.")
            }
            senderProves = proves
            state = .idle
            return .welcome
        case (.idle, .item(let item)), (.refused, .item(let item)):
            state = .looking(item)
            return .look(item)
        case (.idle, .goodbye), (.refused, .goodbye):
            state = .ended
            return .end
        case (.asked(let item, let count, let isWhole), .end(let content)):
            // A sender whose file has become shorter proves less than was asked.
            guard content.count <= count else {
                throw .noTransfer("\(count) bytes were to be proved, and \(content.count) were")
            }
            state = .comparing(item)
            return .compare(item, content, isWhole: isWhole)
        case (.offered(let item, let there, isWhole: false), .go(let offset)):
            // From the end of the part here, or anew.
            guard offset == 0 || offset == there.count else {
                throw .noTransfer("\(offset) bytes are to be kept of \(there.count)")
            }
            state = .receiving(item, offset == 0 ? TransferContent() : there)
            return .begin(item, at: offset)
        case (.offered(let item, let there, isWhole: true), .end(let content)) where content == there:
            state = .idle
            return .alreadyThere(item, content)
        case (.receiving(let item, var content), .data(let bytes)):
            content.add(bytes)
            if item.kind == .lines { content.add([10]) }
            state = .receiving(item, content)
            return .write(bytes)
        case (.receiving(let item, let content), .end(let sent)):
            state = .idle
            return content == sent ? .finish(item, content) : .damaged(item)
        case (.offered(let item, _, _), .giveUp(let reason)), (.receiving(let item, _), .giveUp(let reason)),
            (.asked(let item, _, _), .giveUp(let reason)):
            state = .idle
            return .givenUp(item, reason)
        case (.refused, .go), (.refused, .data), (.refused, .end), (.refused, .giveUp): return .passOver
        default: throw .noTransfer("\(message.word) came \(state.word)")
        }
    }

    /// Something may be there of the item that was looked at: the sender is asked for the content of its first `count` bytes.
    mutating func ask(count: UInt64, isWhole: Bool) {
        guard case .looking(let item) = state else { return }
        state = .asked(item, count: count, isWhole: isWhole)
    }

    /// The receiver has `content` of the item that was looked at or compared.
    mutating func offer(_ content: TransferContent, isWhole: Bool) {
        switch state {
        case .looking(let item), .comparing(let item): state = .offered(item, content, isWhole: isWhole)
        default: break
        }
    }

    /// The item that was looked at needs no data.
    mutating func settle() {
        if case .looking = state { state = .idle }
    }

    /// The item in hand is not taken. The rest of it is passed over.
    mutating func refuse() { state = .refused }
}

extension TransferContent {
    /// Counts bytes in.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { add($0) }
    }

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
        count &+= UInt64(bytes.count)
        checksum = ferry_crc32c(checksum, base, bytes.count)
    }
}

extension TransferInbox.State {
    fileprivate var word: String {
        switch self {
        case .new: "before the greeting"
        case .idle: "between two items"
        case .looking, .asked, .comparing, .offered: "before it was said whether to go on with an item"
        case .receiving: "within an item"
        case .refused: "after an item was refused"
        case .ended: "after the end"
        }
    }
}

extension TransferMessage {
    /// For errors.
    var word: String {
        switch self {
        case .hello: "a greeting"
        case .item: "an item"
        case .go: "a beginning"
        case .data: "data"
        case .end: "the end of an item"
        case .giveUp: "a sender's giving up"
        case .goodbye: "the end of the transfer"
        case .welcome: "a greeting's answer"
        case .prove: "a question for proof"
        case .have, .done, .refused: "an answer to an item"
        }
    }
}
