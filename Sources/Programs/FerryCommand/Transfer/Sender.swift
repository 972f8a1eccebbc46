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

    /// Sends the rest of the items over one channel.
    ///
    /// - Throws: `FerryError` when the connection is lost; the position says how far it came.
    func run(_ channel: TransferChannel, _ position: inout Position) async throws {
        var outbox = try await greet(channel)
        try await run(channel, &outbox, &position)
    }

    /// Greets, and waits for the receiver's greeting.
    ///
    /// - Throws: `noPlace` when the receiver takes nothing at present; `FerryError` when the connection is lost, or no answer comes.
    func greet(_ channel: TransferChannel) async throws -> TransferOutbox {
        var outbox = TransferOutbox()
        try await channel.send(outbox.greet())
        guard let greeting = try await greeting(channel) else {
            throw FerryError(.disconnected, "The receiver closed the connection.")
        }
        _ = try outbox.receive(greeting)
        return outbox
    }

    /// Sends the rest of the items to a receiver that has greeted.
    func run(_ channel: TransferChannel, _ outbox: inout TransferOutbox, _ position: inout Position) async throws {
        position.hasMoved = false
        while position.next < sources.count {
            try await send(sources[position.next], channel, &outbox, &position)
            position.next += 1
            position.hasReadStream = false
        }
        try await channel.send(outbox.leave())
        // The receiver closes when it has heard of it.
        _ = try? await channel.next(within: .seconds(10))
        channel.close()
    }

    private func greeting(_ channel: TransferChannel) async throws -> TransferMessage? {
        do throws(FerryError) { return try await channel.next(within: min(patience, .seconds(10))) } catch {
            guard error.code == .timedOut else { throw error }
            throw FerryError(
                .incompatiblePeer,
                "Connected, but there is no answer. Check that ferry receive runs at the other end, with the same --framing."
            )
        }
    }

    private func answer(
        _ channel: TransferChannel, _ outbox: inout TransferOutbox
    ) async throws -> TransferOutbox.Action {
        guard let answer = try await channel.next(within: patience) else {
            throw FerryError(.disconnected, "The receiver closed the connection.")
        }
        return try outbox.receive(answer)
    }

    private func send(
        _ source: Source, _ channel: TransferChannel, _ outbox: inout TransferOutbox, _ position: inout Position
    ) async throws {
        var opened: Source.Opened?
        var problem: String?
        if source.item.kind != .folder {
            do { opened = try await SystemFile.run { try source.open() } } catch {
                problem = error is Refusal ? "\(error)" : "it cannot be read: \(error)"
            }
        }
        let item = opened?.item ?? source.item
        try await channel.send(outbox.name(item))
        // What the receiver has is of the same file only with the same bytes.
        var own: TransferContent?
        while true {
            switch try await answer(channel, &outbox) {
            case .prove(let count):
                if problem != nil { break }
                let file = opened?.file
                own = try? await SystemFile.run { try file?.content(of: count) }
                try await channel.send(outbox.prove(own ?? TransferContent()))
                continue
            case .compare(let there, let isWhole):
                guard let opened, problem == nil else { break }
                return try await send(opened, there, own, isWhole: isWhole, channel, &outbox, &position)
            case .done: return report.done(item, nil)
            case .refused(let reason): return report.fail(item.name, problem ?? reason)
            case .start, .stop: return
            }
            // The receiver fails too: it did not get all that was to be sent.
            try await channel.send(outbox.giveUp(problem ?? "it cannot be read"))
        }
    }

    private func send(
        _ opened: Source.Opened, _ there: TransferContent, _ proved: TransferContent?, isWhole: Bool,
        _ channel: TransferChannel, _ outbox: inout TransferOutbox, _ position: inout Position
    ) async throws {
        let (item, file) = (opened.item, opened.file)
        let isFile = item.kind == .file
        var own: TransferContent? = TransferContent()
        if isFile, there.count > 0 {
            own =
                proved?.count == there.count ? proved : try? await SystemFile.run { try file.content(of: there.count) }
        }
        let plan = TransferPlan(there: there, isWhole: isWhole, own: own, size: isFile ? item.size : nil)
        guard case .send(let offset) = plan else {
            if plan == .confirm, (try? await isStill(opened, there)) != true {
                try await channel.send(outbox.giveUp(Self.changed))
            } else {
                try await channel.send(outbox.decide(plan, there))
            }
            return try settle(item, there, try await answer(channel, &outbox))
        }
        try await channel.send(outbox.decide(plan, there))
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
            guard try await isStill(opened, content) else { throw Refusal(Self.changed) }
            try await channel.send(outbox.finish(content))
        } catch let error as FerryError {
            throw error
        } catch is EarlyAnswer.Came {
            let action = try outbox.receive(try await answer.wait(patience))
            try await channel.send(outbox.giveUp("the receiver does not take it"))
            return try settle(item, content, action)
        } catch let reason as Refusal {
            try await channel.send(outbox.giveUp(reason.description))
        } catch {
            try await channel.send(outbox.giveUp("it cannot be read any further: \(error)"))
        }
        try settle(item, content, try outbox.receive(try await answer.wait(patience)))
    }

    private static let changed = "it changed while it was sent. Send it again when nothing writes to it"

    private func isStill(_ opened: Source.Opened, _ sent: TransferContent) async throws -> Bool {
        try await SystemFile.run { try opened.isStill(sent) }
    }

    private func settle(_ item: TransferItem, _ content: TransferContent, _ action: TransferOutbox.Action) throws {
        switch action {
        case .done(let wasThere): report.done(item, content, wasThere: wasThere)
        case .refused(let reason), .stop(let reason): report.fail(item.name, reason)
        case .start, .prove, .compare: break
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
            // One that grows as fast as it is sent would never end.
            if isFile, let size = item.size, content.count > size { break }
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
