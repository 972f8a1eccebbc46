import ArgumentParser
import Ferry
import FerryTransports
import Foundation
import Synchronization

/// `ferry send`: files, folders and streams to a `ferry receive`.
struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends files, folders or standard input to ferry receive.",
        discussion: """
            ferry receive --transport unix:/tmp/ferry folder     # in one terminal
            ferry send --transport unix:/tmp/ferry photo.jpg     # in another

            Over a network all data is sealed, so that others can neither read nor change it. ferry receive shows a one-time code, and \
            ferry send takes it: ferry send --transport tcp:office:7000 --code CODE photo.jpg. Two sides that trust each other's keys \
            (ferry trust) need no code. Within this machine nothing is sealed unless --sealed, --code or --peer is given.

            What arrives is checked. After a lost connection, or when either side was killed, the same command goes on with a file \
            where it was. A stream (-, a pipe, --lines) does not resume: its bytes cannot be read again, so it begins \
            anew or fails; --store keeps lines and files. With - standard input is sent: tar c . | ferry send --transport X -, and on the other side \
            ferry receive --transport X - | tar x.

            With --store each file, or with --lines each line, goes into a store of records first, and leaves it when it is on the \
            other side's disk: once and in order, through kills and lost connections. The same command without files resumes \
            with the pending records. A receiver that refuses or takes nothing is tried again, until --timeout has gone by. It needs ferry receive --store on the other side, and a build with the trait Records.

            What cannot be sent from a folder (links, pipes, names that are not UTF-8) and a file that changes while it is sent fail, \
            and the rest arrives.

            Ends with 0 when all has arrived, 1 when something has not, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: TransferOptions

    @Argument(help: "Files and folders; - is standard input. May be left out with --store.", completion: .file())
    var paths: [String] = []

    @Option(help: ArgumentHelp("Send as records, from this store; made when it is not there.", valueName: "file"))
    var store: String?

    @Option(help: "With --store: whose records; by default the only peer's that the store knows.")
    var to: String?

    @Option(help: "With --store: the stream to send in. Each stream keeps its order.")
    var stream: String?

    @Flag(help: "Send every line as a separate message, as soon as it is there.")
    var lines = false

    @Option(help: ArgumentHelp("What standard input is called in the receiver's folder.", valueName: "name"))
    var name = "stdin"

    @Flag(help: "With --store: to any gateway of a fleet, each with its own store, not to one receiver.")
    var fleet = false

    @Option(
        help: ArgumentHelp(
            "With --store: add what the other side sends to this file, each record a line; - for standard output.",
            valueName: "file"))
    var inbox: String?

    @Option(
        help: ArgumentHelp(
            "With --inbox: run commands that come, each a program in this folder; see ferry command.",
            valueName: "folder"))
    var commands: String?

    @Option(
        help: ArgumentHelp(
            "With --inbox: take files that come into this folder; see ferry command.", valueName: "folder"))
    var files: String?

    @Flag(help: "Wait to be connected to, and do not connect.")
    var listen = false

    func validate() throws {
        if !listen { try options.transport.requireConnectable() }
        if listen && options.trust.code != nil { throw ValidationError(TransferOptions.codeOfListener) }
        if commands != nil || files != nil, inbox == nil {
            throw ValidationError("--commands and --files go with --store and --inbox.")
        }
        if commands != nil || files != nil, !options.provesPeer(listens: listen) {
            throw ValidationError(
                "Over \(options.transport) a stranger in the gateway's place could have commands run. Add --sealed, and trust the "
                    + "gateway's key with ferry trust.")
        }
        guard store == nil else { return }
        guard TransferName.parts(name) != nil else {
            throw ValidationError(
                "--name '\(name)' is no name that can be sent: give a relative path without . and .. in it.")
        }
        if paths.isEmpty { throw ValidationError("Name the items to send: files, folders, or - for standard input.") }
        if to != nil || stream != nil || fleet || inbox != nil {
            throw ValidationError("--to, --stream, --fleet and --inbox go with --store.")
        }
    }

    func run() async throws {
        try options.openLog()
        if let store { return try await sendRecords(from: store) }
        let report = TransferReport(verb: "Sent", isJSON: options.json, isQuiet: options.quiet)
        try await TransferRun.run(report) {
            let list = try SourceList(paths, streamName: name, asLines: lines)
            report.expect(list.totalBytes)
            try await send(list.sources, report)
        }
    }

    private func send(_ sources: [Source], _ report: TransferReport) async throws {
        let sender = Sender(sources: sources, report: report, patience: max(options.patience, .seconds(30)))
        let meeting = try await Meeting.open(
            try options.open("sender"), listens: listen, named: options.transport, onWait: { report.wait($0) }
        ) { report.remark($0) }
        defer { meeting.close() }
        if let listener = meeting.listener { return try await send(sender, sources.count, meeting, listener, report) }
        var position = Sender.Position()
        var retries = RetryTimes(limit: options.patience)
        let time = SystemTime()
        while true {
            let link: any Link
            do throws(FerryError) {
                link = try await meeting.next(within: max(.milliseconds(100), retries.left(at: time.now)))
            } catch {
                // What went wrong when the other side was there says more than that it is there no longer.
                throw retries.reason.map { FerryError(error.code, givenUp($0)) } ?? error
            }
            let channel = try options.channel(over: link)
            do {
                try await withTaskCancellationHandler {
                    try await sender.run(channel, &position)
                } onCancel: {
                    channel.close()
                }
                return
            } catch let error as FerryError {
                channel.close()
                try Task.checkCancellation()
                // Every item was answered; the rest of the farewell changes nothing.
                if position.next == sources.count { return }
                guard error.isLoss || error.code == .noPlace, !position.hasReadStream else { throw error }
                if position.hasMoved { retries.moved() }
                let reason = error.code == .noPlace ? error.message : "The connection was lost: \(error.message)"
                guard let pause = retries.failed(reason, at: time.now, chance: .random(in: 0...1)) else {
                    throw FerryError(error.code, givenUp(reason))
                }
                report.remark("\(reason) Trying again.")
                try await time.sleep(for: pause)
            }
        }
    }

    /// The same to a receiver that connects. Connections that say nothing hold up no receiver.
    private func send(
        _ sender: Sender, _ count: Int, _ meeting: Meeting, _ listener: LinkListener, _ report: TransferReport
    ) async throws {
        let position = Mutex(Sender.Position())
        let wait = meeting.announce(within: options.patience)
        defer { wait.cancel() }
        let reception = Reception(
            keeps: false, patience: options.patience, who: "receiver",
            canGoOn: { !position.withLock(\.hasReadStream) }, remark: { report.remark($0) })
        try await reception.run(listener) { comer, greeted in
            let channel = try options.channel(over: comer.link)
            defer { channel.close() }
            comer.onReplaced { _ in channel.close() }
            return try await withTaskCancellationHandler {
                var outbox = try await sender.greet(channel)
                try comer.greeted(as: channel.peer)
                comer.proved()
                wait.cancel()
                greeted()
                // One has the place at a time.
                var mine = position.withLock { $0 }
                defer { position.withLock { $0 = mine } }
                do { try await sender.run(channel, &outbox, &mine) } catch let error as FerryError {
                    try Task.checkCancellation()
                    // Every item was answered; the rest of the farewell changes nothing.
                    if mine.next == count { return .complete }
                    guard error.isLoss else { throw error }
                    return .lost(error)
                }
                return .complete
            } onCancel: {
                channel.close()
            }
        }
    }

    private func givenUp(_ reason: String) -> String {
        "\(reason) Nothing has gone through for \(TransferReport.time(options.timeout)); the same command goes on where it was."
    }
}

extension FerryError {
    /// Whether it is about who the other side is: it ends that connection, and tells nothing of the next.
    var isOfHandshake: Bool { code.description.hasPrefix("seal.") || code == .incompatiblePeer }

    /// Whether the connection has gone, so that another may do better.
    var isLoss: Bool { [.disconnected, .truncatedMessage, .timedOut, .closed].contains(code) }
}

/// The other sides of a transfer, as they come or are gone to.
struct Meeting {
    private let transport: any Transport
    /// Nil where the other side is connected to.
    let listener: LinkListener?
    private let name: String
    private let onWait: @Sendable (String) -> Void

    /// - Parameters:
    ///   - named: the transport's name; messages have the port that the system chose in place of 0.
    ///   - onWait: receives the words of a wait that takes more than half a second.
    ///   - remark: receives each obstacle to those who are waited for, at any moment.
    static func open(
        _ transport: any Transport, listens: Bool, named: NamedTransport, onWait: @escaping @Sendable (String) -> Void,
        _ remark: @escaping @Sendable (String) -> Void
    ) async throws -> Meeting {
        let listener = listens ? try await transport.listen() : nil
        listener?.onInterruption { remark($0?.message ?? "Listening again.") }
        let chosen = listens ? named.chosenName(listening: transport) : nil
        if let chosen { remark("Listening at \(chosen).") }
        return Meeting(transport: transport, listener: listener, name: chosen ?? "\(named)", onWait: onWait)
    }

    /// The next connection.
    ///
    /// - Throws: `timedOut`, why no peer could come, or what connecting throws.
    func next(within timeout: Duration) async throws(FerryError) -> any Link {
        let time = SystemTime()
        let notice = announce(within: timeout)
        defer { notice.cancel() }
        guard let listener else { return try await transport.connect(timeout: timeout) }
        // The listener ends with the task that waits for it, so it is not the task that is given up.
        let timer = time.schedule(at: time.now + timeout) { listener.close() }
        defer { timer.cancel() }
        for await link in listener.links { return link }
        // The obstacle all the while explains more than the time that went by.
        if let reason = listener.interruption { throw reason }
        throw FerryError(.timedOut, "No peer has connected within \(TransferReport.time(timeout / .seconds(1))).")
    }

    /// Says the wait, unless it ends within half a second.
    ///
    /// - Parameter timeout: how long it is waited for; nil for ever.
    func announce(within timeout: Duration?) -> ScheduledTimer {
        let time = SystemTime()
        let limit = timeout.map { " for up to \(TransferReport.time($0 / .seconds(1)))" } ?? ""
        let wait = "Waiting\(limit) \(listener == nil ? "to connect to" : "for a connection at") \(name)."
        return time.schedule(at: time.now + .milliseconds(500)) { onWait(wait) }
    }

    func close() { listener?.close() }
}
