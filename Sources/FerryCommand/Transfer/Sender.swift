import Ferry
import Synchronization

/// The sending side of a transfer, over as many connections as it takes.
struct Sender: Sendable {
    let sources: [Source]
    let report: TransferReport
    /// How long to wait for an answer. The receiver may have to read all that it has of an item first.
    let patience: Duration

    /// Where the transfer stands, which outlives connections.
    struct Position {
        /// The next item.
        var next = 0
        /// Whether anything has crossed over this connection.
        var hasMoved = false
        /// Whether a stream was read from, which cannot be read again.
        var hasReadStream = false
    }

    /// Sends what is not sent yet over one channel.
    ///
    /// - Throws: `FerryError` when the connection is lost; the position says how far it came.
    func run(_ channel: TransferChannel, _ position: inout Position) async throws {
        position.hasMoved = false
        try await channel.send(.hello(version: TransferMessage.version))
        switch try await greeting(channel) {
        case .welcome(let version)? where version == TransferMessage.version: break
        case .welcome(let version)?:
            throw FerryError(
                .incompatiblePeer, "The receiver speaks version \(version) of the protocol; this is version 1.")
        case nil: throw FerryError(.disconnected, "The receiver closed the connection.")
        case .some: throw FerryError.noTransfer("the greeting was not answered")
        }
        while position.next < sources.count {
            try await send(sources[position.next], channel, &position)
            position.next += 1
            position.hasReadStream = false
        }
        try await channel.send(.goodbye)
        // The receiver closes when it has heard of it.
        _ = try? await channel.next(within: .seconds(10))
        channel.close()
    }

    private func greeting(_ channel: TransferChannel) async throws -> TransferMessage? {
        do throws(FerryError) { return try await channel.next(within: min(patience, .seconds(10))) } catch {
            guard error.code == .timedOut else { throw error }
            throw FerryError(
                .incompatiblePeer,
                "Connected, but nobody answers. Check that ferry receive runs at the other end, with the same --framing."
            )
        }
    }

    private func answer(_ channel: TransferChannel) async throws -> TransferMessage {
        guard let answer = try await channel.next(within: patience) else {
            throw FerryError(.disconnected, "The receiver closed the connection.")
        }
        return answer
    }

    private func send(_ source: Source, _ channel: TransferChannel, _ position: inout Position) async throws {
        let item = source.item
        var file: SystemFile?
        if item.kind != .folder {
            do { file = try await SystemFile.run { try source.open() } } catch {
                return report.fail(item.name, "it cannot be read: \(error)")
            }
        }
        try await channel.send(.item(item))
        switch try await answer(channel) {
        case .done: report.done(item, nil)
        case .refused(let reason): report.fail(item.name, reason)
        case .have(let there, let isWhole):
            guard let file else { throw FerryError.noTransfer("a folder was answered like a file") }
            try await send(item, file, there, isWhole: isWhole, channel, &position)
        default: throw FerryError.noTransfer("an item was not answered")
        }
    }

    private func send(
        _ item: TransferItem, _ file: SystemFile, _ there: TransferContent, isWhole: Bool, _ channel: TransferChannel,
        _ position: inout Position
    ) async throws {
        let isFile = item.kind == .file
        var own: TransferContent? = TransferContent()
        if isFile { own = try? await SystemFile.run { try file.content(of: there.count) } }
        switch TransferPlan(there: there, isWhole: isWhole, own: own, size: isFile ? item.size : nil) {
        case .confirm:
            try await channel.send(.end(there))
            try settle(item, there, try await answer(channel), wasThere: true)
        case .conflict:
            let reason = "another file of that name is there already; --overwrite at the receiver replaces it"
            try await channel.send(.giveUp(reason))
            try settle(item, there, try await answer(channel))
        case .send(let offset):
            try await channel.send(.go(offset: offset))
            report.begin(item, at: offset)
            if !isFile { position.hasReadStream = true }
            var content = offset == 0 ? TransferContent() : there
            // The receiver speaks when it has all, or before when it does not take it.
            let answer = EarlyAnswer(channel)
            do {
                if isFile { try await SystemFile.run { try file.seek(to: offset) } }
                if item.kind == .lines {
                    try await sendLines(of: file, &content, channel, answer, &position)
                } else {
                    try await sendBytes(of: file, item, &content, channel, answer, &position)
                }
                try await channel.send(.end(content))
            } catch let error as FerryError {
                throw error
            } catch is EarlyAnswer.Came {
                try await channel.send(.giveUp("the receiver does not take it"))
            } catch {
                try await channel.send(.giveUp("it cannot be read any further: \(error)"))
            }
            try settle(item, content, try await answer.wait(patience))
        }
    }

    private func settle(
        _ item: TransferItem, _ content: TransferContent, _ answer: TransferMessage, wasThere: Bool = false
    ) throws {
        switch answer {
        case .done: report.done(item, content, wasThere: wasThere)
        case .refused(let reason): report.fail(item.name, reason)
        default: throw FerryError.noTransfer("the end of an item was not answered")
        }
    }

    private func sendBytes(
        of file: SystemFile, _ item: TransferItem, _ content: inout TransferContent, _ channel: TransferChannel,
        _ answer: EarlyAnswer, _ position: inout Position
    ) async throws {
        let size = channel.dataSize
        let isFile = item.kind == .file
        while true {
            // The message as it goes out: its kind, and what the file has.
            let message = try await SystemFile.run { () throws -> [UInt8] in
                try [UInt8](unsafeUninitializedCapacity: size + 1) { buffer, count in
                    buffer[0] = 0x03
                    let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[1...])
                    count = 1 + (isFile ? try file.fill(rest) : try file.readSome(rest))
                }
            }
            guard message.count > 1 else { break }
            content.add(message[1...])
            try answer.check()
            try await channel.send(encoded: message)
            position.hasMoved = true
            report.move(message.count - 1)
        }
        guard isFile, let size = item.size, content.count != size else { return }
        throw Refusal("it changed while it was sent: it had \(size) bytes, and then \(content.count)")
    }

    private func sendLines(
        of file: SystemFile, _ content: inout TransferContent, _ channel: TransferChannel,
        _ answer: EarlyAnswer, _ position: inout Position
    ) async throws {
        var reader = LineReader()
        while let line = try await reader.next(of: file) {
            guard line.count <= TransferMessage.maximumData else {
                throw Refusal("a line has more than \(TransferMessage.maximumData) bytes")
            }
            content.add(line)
            content.add([10])
            try answer.check()
            try await channel.send(.data(line))
            position.hasMoved = true
            report.move(line.count + 1)
        }
    }
}

/// The answer to an item, which may come while the item is still being sent.
private final class EarlyAnswer: Sendable {
    /// It has come.
    struct Came: Error {}

    private let channel: TransferChannel
    private let task: Task<TransferMessage?, any Error>

    private final class Flag: Sendable { let value = Atomic(false) }
    private let flag: Flag

    init(_ channel: TransferChannel) {
        self.channel = channel
        let flag = Flag()
        self.flag = flag
        task = Task {
            defer { flag.value.store(true, ordering: .relaxed) }
            return try await channel.next()
        }
    }

    func check() throws(Came) {
        if flag.value.load(ordering: .relaxed) { throw Came() }
    }

    func wait(_ patience: Duration) async throws -> TransferMessage {
        let timer = channel.limit(patience)
        defer { timer.cancel() }
        guard let answer = try await task.value else {
            throw FerryError(.disconnected, "The receiver closed the connection.")
        }
        return answer
    }
}

/// Lines of a file, without their ends, as soon as they are there.
struct LineReader {
    private var rest: ArraySlice<UInt8> = []
    private var searched = 0
    private var isAtEnd = false

    /// The next line; nil at the end. A last line without an end is one all the same.
    mutating func next(of file: SystemFile) async throws -> ArraySlice<UInt8>? {
        while true {
            if let end = rest.dropFirst(searched).firstIndex(of: 10) {
                defer {
                    rest = rest[(end + 1)...]
                    searched = 0
                }
                return rest[..<end]
            }
            searched = rest.count
            if isAtEnd || rest.count > TransferMessage.maximumData {
                defer {
                    rest = []
                    searched = 0
                }
                return rest.isEmpty ? nil : rest
            }
            let more = try await SystemFile.run { () throws -> [UInt8] in
                try [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                    count = try file.readSome(UnsafeMutableRawBufferPointer(buffer))
                }
            }
            isAtEnd = more.isEmpty
            rest = (Array(rest) + more)[...]
        }
    }
}
