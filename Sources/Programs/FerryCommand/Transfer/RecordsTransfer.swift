#if Records
    import Ferry
    import FerryRecords
    import Foundation
    import Synchronization

    /// `ferry send --store`: the input becomes records in the outbox; then the outbox is sent until nothing waits.
    struct RecordsSender: Sendable {
        let store: RecordStore
        let peer: String
        let stream: String
        /// Whether each line is a record, and not each file.
        let asLines: Bool
        let options: TransferOptions
        let listens: Bool
        /// Whether the other side is another store now and then.
        let isFleet: Bool
        /// Where what the other side sends is written to; nil to leave it in the store.
        let inbox: String?
        /// Runs the commands that come; nil where they are records like others.
        let desk: CommandDesk?
        let report: TransferReport
        private let isInputOver = Shared(false)
        private let time = SystemTime()

        init(
            _ store: RecordStore, to peer: String, stream: String, asLines: Bool, _ options: TransferOptions,
            listens: Bool, isFleet: Bool, inbox: String?, desk: CommandDesk? = nil, _ report: TransferReport
        ) {
            (self.store, self.peer, self.stream, self.asLines) = (store, peer, stream, asLines)
            (self.options, self.listens, self.isFleet, self.report) = (options, listens, isFleet, report)
            (self.inbox, self.desk) = (inbox, desk)
        }

        /// A value that two tasks look at.
        private final class Shared<Value: Sendable>: Sendable {
            private let content: Mutex<Value>
            init(_ value: Value) { content = Mutex(value) }
            var value: Value {
                get { content.withLock { $0 } }
                set { content.withLock { $0 = newValue } }
            }
        }

        /// Sends while the input comes, and until all is on the other side's disk; writes the records that come meanwhile.
        func run(_ paths: [String]) async throws {
            // Later they would be found out when the other side has come, or has been waited for.
            for path in paths where path != "-" { try check(path) }
            guard let inbox else { return try await sendAll(paths) }
            let output: SystemFile
            do { output = try SystemFile.forAppending(inbox) } catch {
                throw Refusal("'\(inbox.forTerminal)' cannot be written: \(error)")
            }
            try await RecordPrinter(store: store, output: output, isJSON: options.json, desk: desk).run {
                try await sendAll(paths)
            }
        }

        private func sendAll(_ paths: [String]) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for path in paths { try await append(path) }
                    isInputOver.value = true
                }
                group.addTask { try await send() }
                try await group.waitForAll()
            }
        }

        // MARK: Input

        /// - Throws: ``Refusal`` for a path that cannot be opened, or a file that is too long for one record.
        private func check(_ path: String) throws {
            let stamp: SystemFile.Stamp
            do throws(SystemFile.Failure) { stamp = try SystemFile.stamp(ofReadable: path) } catch {
                throw Refusal("'\(path.forTerminal)' cannot be read: \(error).")
            }
            guard stamp.kind != S_IFDIR else {
                throw Refusal("'\(path.forTerminal)' is a folder, which is no record. Name its files.")
            }
            if !asLines, stamp.kind == S_IFREG, stamp.size > UInt64(store.configuration.largestRecord) {
                throw tooLong(path)
            }
        }

        private func tooLong(_ path: String) -> Refusal {
            Refusal(
                "'\(path.forTerminal)' has more than \(store.configuration.largestRecord) bytes for one record. "
                    + "Send it as lines, with --lines, or as a file, without --store.")
        }

        private func append(_ path: String) async throws {
            let file: SystemFile
            do {
                file = path == "-" ? SystemFile(STDIN_FILENO, isOwned: false) : try SystemFile.opened(path)
            } catch {
                throw Refusal("'\(path.forTerminal)' cannot be read: \(error).")
            }
            var rest: [UInt8] = []
            while true {
                let some = try await SystemFile.run {
                    try withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { buffer in
                        let count = try file.readSome(buffer)
                        return Array(buffer[..<count])
                    }
                }
                guard !some.isEmpty else { break }
                rest += some
                if asLines {
                    var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(
                        Array.init)
                    rest = lines.removeLast()
                    try await append(lines)
                }
                guard rest.count <= store.configuration.largestRecord else { throw tooLong(path) }
            }
            if !asLines || !rest.isEmpty { try await append([rest]) }
        }

        private func append(_ records: [[UInt8]]) async throws {
            // However long the other side is away: the reader of the input waits, and so does its writer.
            try await store.append(
                contentsOf: records, to: peer, stream: stream, whenFull: .wait(atMost: .seconds(365 * 86_400)))
        }

        // MARK: Sending

        private func send() async throws {
            let meeting = try await Meeting.open(
                try options.open("sender"), listens: listens, named: options.transport,
                onWait: { [report] in report.wait($0) }
            ) { [report] in report.remark($0) }
            defer { meeting.close() }
            if let listener = meeting.listener { return try await send(meeting, listener) }
            var retries = RetryTimes(limit: options.patience)
            while true {
                let wasOver = isInputOver.value
                let wasWaiting = try await waiting()
                let link: any Link
                do {
                    // Of a fleet another one comes, which this one has not failed at.
                    let limit = isFleet ? options.patience : max(.milliseconds(100), retries.left(at: time.now))
                    link = try await meeting.next(within: limit)
                } catch {
                    // All is there; it is only that the other side could not be told that no more comes.
                    if wasOver, wasWaiting == 0, retries.reason != nil { return }
                    try Task.checkCancellation()
                    guard let reason = retries.reason else { throw error }
                    throw try await givenUp(reason)
                }
                switch try await attempt(over: link, &retries) {
                case .done: return
                case .again(let pause): if let pause { try await time.sleep(for: pause) }
                }
            }
        }

        /// The same to a receiver that connects. Connections that say nothing, and strangers, hold up no receiver.
        private func send(_ meeting: Meeting, _ listener: LinkListener) async throws {
            let retries = Shared(RetryTimes(limit: options.patience))
            let wait = meeting.announce(within: options.patience)
            defer { wait.cancel() }
            let reception = Reception(
                keeps: false, patience: options.patience, who: "receiver", canGoOn: { true },
                remark: { [report] in report.remark($0) })
            do {
                try await reception.run(listener) { comer, greeted in
                    // One has the place at a time.
                    var mine = retries.value
                    let next = try await attempt(over: comer.link, &mine, comer) {
                        wait.cancel()
                        greeted()
                    }
                    if comer.isProven { retries.value = mine }
                    guard case .again = next else { return .complete }
                    return .lost(FerryError(.disconnected, mine.reason ?? "The input is over."))
                }
            } catch {
                // All is there; it is only that the other side could not be told that no more comes.
                if isInputOver.value, retries.value.reason != nil, try await waiting() == 0 { return }
                throw error
            }
        }

        private enum Next {
            case done
            /// After a pause, where this side connects.
            case again(after: Duration?)
        }

        /// - Throws: what trying again does not help against.
        private func attempt(
            over link: any Link, _ retries: inout RetryTimes, _ comer: Acceptor.Comer? = nil,
            onGreeting: @escaping @Sendable () -> Void = {}
        ) async throws -> Next {
            let wasOver = isInputOver.value
            let wasWaiting = try await waiting()
            let outcome = try await exchange(over: link, wasOver, comer, onGreeting)
            let isWaiting = try await waiting()
            if outcome.isComplete, isInputOver.value, isWaiting == 0 { return .done }
            // Trying again does not make it smaller.
            if !isFleet, wasOver, isWaiting == wasWaiting, let record = outcome.heldUp.first {
                throw Refusal(
                    "Record \(record.sequence) of stream '\(record.stream.forTerminal)' has \(record.bytes) bytes, and the other "
                        + "side takes at most \(record.largest). \(Self.count(isWaiting)) in the store.")
            }
            // The other side is there, and takes records as it can.
            let isCollecting = outcome.isComplete && !wasOver
            if outcome.hasMoved || isWaiting < wasWaiting || isCollecting { retries.moved() }
            if !wasOver && isInputOver.value { return .again(after: nil) }
            var reason = outcome.reason ?? "The other side takes no more at present."
            if !outcome.isComplete, !outcome.hasMoved, comer == nil, options.connectsPlainlyToItself {
                reason += " If it listens to a network too, it wants a seal: give --sealed."
            }
            let pause = retries.failed(reason, at: time.now, chance: .random(in: 0...1))
            guard isFleet || pause != nil else { throw try await givenUp(reason) }
            if comer == nil { report.remark("\(reason) Trying again.") }
            return .again(after: pause)
        }

        private struct Outcome {
            let isComplete: Bool
            /// Whether records crossed, either way.
            let hasMoved: Bool
            /// Why it ended before all was done.
            let reason: String?
            /// Records that the other side never takes.
            let heldUp: [RecordStore.Summary.HeldUp]
        }

        /// One exchange over a link.
        ///
        /// - Throws: what trying again does not help against.
        private func exchange(
            over link: any Link, _ isInputOver: Bool, _ comer: Acceptor.Comer?,
            _ onGreeting: @escaping @Sendable () -> Void
        ) async throws -> Outcome {
            let channel = try options.recordsChannel(over: link)
            do {
                let summary =
                    isInputOver
                    ? try await store.exchange(
                        over: channel, with: peer, endingWhenIdle: .milliseconds(300), for: comer, replacing: isFleet,
                        onGreeting: onGreeting)
                    : try await exchangeWhileInputComes(channel, comer, onGreeting)
                return Outcome(
                    isComplete: summary.isComplete, hasMoved: summary.committed + summary.received > 0,
                    reason: summary.ending.reason, heldUp: summary.heldUp)
            } catch let error as FerryError where error.isLoss || error.code == .peerCannotStore {
                try Task.checkCancellation()
                return Outcome(isComplete: false, hasMoved: false, reason: error.message, heldUp: [])
            }
        }

        private func givenUp(_ reason: String) async throws -> Refusal {
            Refusal(
                "\(reason) The other side has taken nothing for \(TransferReport.time(options.timeout)). "
                    + "\(Self.count(try await waiting())) in the store; ferry outbox show has them.")
        }

        private static func count(_ count: Int) -> String { count == 1 ? "1 record waits" : "\(count) records wait" }

        /// Until the link is lost, or the input is over and all of it there, which the other side is told.
        private func exchangeWhileInputComes(
            _ channel: MessageChannel<[UInt8], [UInt8]>, _ comer: Acceptor.Comer?,
            _ onGreeting: @escaping @Sendable () -> Void
        ) async throws -> RecordStore.Summary {
            try await withThrowingTaskGroup(of: RecordStore.Summary.self) { group in
                group.addTask {
                    try await store.exchange(
                        over: channel, with: peer, for: comer, replacing: isFleet, onGreeting: onGreeting)
                }
                group.addTask {
                    while !isInputOver.value { try await Task.sleep(for: .milliseconds(20)) }
                    do { try await store.drained(peer, within: .seconds(10)) } catch let error as FerryError
                        where error.code == .timedOut
                    {
                        // It takes longer, or something is in its way: from here on as if the input had been there at first.
                        while true {
                            try await store.endExchange(with: peer, because: "The input is over.")
                            try await Task.sleep(for: .milliseconds(50))
                        }
                    }
                    while true {
                        try await store.endExchange(with: peer)
                        try await Task.sleep(for: .milliseconds(50))
                    }
                }
                defer { group.cancelAll() }
                guard let summary = try await group.next() else { throw CancellationError() }
                return summary
            }
        }

        private func waiting() async throws -> Int {
            try await store.waiting().filter { $0.peer == peer }.reduce(0) { $0 + $1.count }
        }
    }

    /// What arrives in a store's inbox, a line each; a record is done when it is written.
    private struct RecordPrinter {
        let store: RecordStore
        let output: SystemFile
        let isJSON: Bool
        /// Runs the records that are commands; nil where they are printed.
        let desk: CommandDesk?

        /// A record for programs. `id` is the same when it is printed again.
        private struct Line: Encodable {
            var event = "record"
            let id: String
            let peer: String
            let stream: String
            let sequence: UInt64
            var origin: String?
            var text: String?
            var base64: String?
        }

        /// Writes while `body` runs, and then the rest.
        func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await write() }
                group.addTask {
                    try await body()
                    while try await store.undone() > 0 { try await Task.sleep(for: .milliseconds(5)) }
                }
                // Writing ends only with an error, or when it is told to.
                try await group.next()
                group.cancelAll()
            }
            try Task.checkCancellation()
        }

        /// A page at a time: one write to the output, and one to the disk.
        private func write() async throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            var records = store.inbox.makeAsyncIterator()
            while let page = try await records.page() {
                var lines: [UInt8] = []
                var last: [Int64: ArrivedRecord.Place] = [:]
                for record in page {
                    if let desk, CommandDesk.isCommand(record) {
                        // What came before it is printed before it runs.
                        try await flush(&lines, &last)
                        _ = try await desk.take(record)
                        continue
                    }
                    if isJSON {
                        lines += try encoder.encode(line(of: record))
                    } else {
                        lines += record.bytes
                    }
                    lines.append(UInt8(ascii: "\n"))
                    last[record.place.stream] = record.place
                }
                try await flush(&lines, &last)
            }
        }

        private func flush(_ lines: inout [UInt8], _ last: inout [Int64: ArrivedRecord.Place]) async throws {
            guard !last.isEmpty else { return }
            let text = lines
            try await SystemFile.run { try output.write(text[...]) }
            try await store.done(through: Array(last.values))
            (lines, last) = ([], [:])
        }

        private func line(of record: ArrivedRecord) -> Line {
            var line = Line(
                id: "\(record.id)", peer: record.peer, stream: record.origin?.stream ?? record.id.stream,
                sequence: record.origin?.sequence ?? record.id.sequence, origin: record.origin?.name)
            line.text = String(validating: record.bytes, as: UTF8.self)
            if line.text == nil { line.base64 = Data(record.bytes).base64EncodedString() }
            return line
        }
    }

    /// `ferry receive --store`: what arrives is on disk before the sender hears of it, then printed, then done.
    struct RecordsReceiver: Sendable {
        let store: RecordStore
        let options: TransferOptions
        let connects: Bool
        /// Whether it goes on when a sender has sent everything.
        let keeps: Bool
        let report: TransferReport

        func run() async throws {
            let output = SystemFile(STDOUT_FILENO, isOwned: false)
            try await RecordPrinter(store: store, output: output, isJSON: options.json, desk: nil).run {
                try await receive()
            }
        }

        private func receive() async throws {
            let meeting = try await Meeting.open(
                try options.open("receiver"), listens: !connects, named: options.transport,
                onWait: { [report] in report.wait($0) }
            ) { [report] in report.remark($0) }
            defer { meeting.close() }
            guard let listener = meeting.listener else { return try await receiveConnecting(meeting) }
            let wait = meeting.announce(within: keeps ? nil : options.patience)
            defer { wait.cancel() }
            let reception = Reception(
                keeps: keeps, patience: options.patience, canGoOn: { true }, remark: { [report] in report.remark($0) })
            try await reception.run(listener) { comer, greeted in
                let channel = try options.recordsChannel(over: comer.link)
                return try await received {
                    try await store.exchange(over: channel, for: comer) {
                        wait.cancel()
                        greeted()
                    }
                }
            }
        }

        /// From a sender that listens: it is connected to again when it is lost.
        private func receiveConnecting(_ meeting: Meeting) async throws {
            var before: (any Error)?
            while true {
                let link: any Link
                do { link = try await meeting.next(within: options.patience) } catch { throw before ?? error }
                let outcome = try await received {
                    try await store.exchange(over: try options.recordsChannel(over: link))
                }
                guard case .lost(let failure) = outcome else { return }
                before = failure
                try Task.checkCancellation()
                report.remark("\(failure.message) Waiting for the sender to come again.")
            }
        }

        private func received(
            _ exchange: () async throws -> RecordStore.Summary
        ) async throws -> Reception.Outcome {
            do {
                let summary = try await exchange()
                guard let reason = summary.ending.reason else { return .complete }
                return .lost(FerryError(.disconnected, "The sender left before it had sent everything: \(reason)"))
            } catch let error as FerryError where error.isLoss {
                return .lost(error)
            }
        }
    }

    extension TransferOptions {
        fileprivate func recordsChannel(over link: any Link) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> {
            func open(_ framing: some Framing) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> {
                try MessageChannel(over: try logged(link), codec: BytesCodec(), framing: framing, chunkSize: chunk)
            }
            return try open(protected(over: link))
        }
    }

    extension Send {
        func sendRecords(from path: String) async throws {
            let report = TransferReport(verb: "Sent", isJSON: false, isQuiet: true)
            try await TransferRun.run(report) {
                try await RecordStore.use(path) { store in
                    let peers = Set(try await store.waiting().map(\.peer)).sorted()
                    guard let peer = try to.map(StorePeer.name) ?? (peers.count > 1 ? nil : peers.first ?? "receiver")
                    else {
                        throw Refusal(
                            "The store \(path) has records for \(peers.joined(separator: ", ")). Choose one with --to.")
                    }
                    try await RecordsSender(
                        store, to: peer, stream: stream ?? "", asLines: lines, options, listens: listen, isFleet: fleet,
                        inbox: inbox, desk: try desk(store), report
                    ).run(paths)
                }
            }
        }

        /// - Returns: what runs commands; nil without `--commands` and `--files`.
        private func desk(_ store: RecordStore) throws -> CommandDesk? {
            guard commands != nil || files != nil else { return nil }
            let programs = try commands.map { try CommandFolder($0) }
            if let files, (try? SystemFile.opened(files).stamp().kind) != S_IFDIR {
                throw CommandFailure("'\(files)' is no folder. Make it, or name another.")
            }
            let drop = files.map { FileDrop($0).handlers } ?? [:]
            return CommandDesk(store) { drop[$0] ?? programs?.handler($0) }
        }
    }

    extension Receive {
        func receiveRecords(into path: String) async throws {
            let report = TransferReport(verb: "Received", isJSON: false, isQuiet: true)
            try await TransferRun.run(report) {
                try await RecordStore.use(path) { store in
                    try await RecordsReceiver(
                        store: store, options: options, connects: connect, keeps: keep, report: report
                    ).run()
                }
            }
        }
    }
#else
    import ArgumentParser

    extension Send {
        func sendRecords(from path: String) async throws { throw RecordsStores.areMissing }
    }

    extension Receive {
        func receiveRecords(into path: String) async throws { throw RecordsStores.areMissing }
    }

    private enum RecordsStores {
        static let areMissing = ValidationError(
            "Stores are not part of this build. Build with the trait Records: swift run --traits Records ferry ...")
    }
#endif
