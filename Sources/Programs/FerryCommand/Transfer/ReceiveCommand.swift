import ArgumentParser
import Ferry
import FerryTransports
import Foundation

/// `ferry receive`: takes what `ferry send` sends.
struct Receive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Receives what ferry send sends, into a folder or to standard output.",
        discussion: """
            Waits for a sender, and ends when one has sent everything; with --keep it goes on waiting, and takes several at \
            once. Nothing is written outside of the folder. A file that is there is not replaced without --overwrite; one that \
            is the same counts as received. Incomplete files are kept as .NAME.ferry-part, the largest 64 of them, and sending a file again resumes there; a stream \
            begins anew. Files and folders have the sender's permissions, less those that the umask removes. A file is on disk \
            before the sender hears that it has arrived.

            With --store it takes the records of ferry send --store, onto its disk and then to standard output, a line each. Those \
            that were printed just before a kill, at most 128, are printed again; with --json each has an id by which that shows.

            Over a network what crosses is sealed. Unless trusted keys come (ferry trust), the sender needs the one-time code that is \
            shown here; with --keep none is shown, and ferry invite makes codes. --plain seals nothing.

            Ends with 0 when all has arrived, 1 when something has not, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: TransferOptions

    @Argument(help: "The folder to write to; - is standard output.", completion: .directory)
    var destination = "."

    @Option(help: ArgumentHelp("Receive records, into this store; made when it is not there.", valueName: "file"))
    var store: String?

    @Flag(help: "Replace files that are there.")
    var overwrite = false

    @Flag(help: "Go on waiting for senders until interrupted.")
    var keep = false

    @Flag(help: "Connect to a sender that listens, and do not wait to be connected to.")
    var connect = false

    mutating func validate() throws {
        // A receiver that waits for days, perhaps with its output in a log, shows none unless asked to.
        if keep { options.trust.showCode = options.trust.showCode ?? false }
        if connect { try options.transport.requireConnectable() }
        if !connect && options.trust.code != nil { throw ValidationError(TransferOptions.codeOfListener) }
        if keep && connect { throw ValidationError("--keep waits for senders, and --connect goes to one. Choose one.") }
        if store != nil {
            guard destination == ".", !overwrite else {
                throw ValidationError("With --store records go to standard output; name no folder, and no --overwrite.")
            }
            return
        }
        if keep && destination == "-" {
            throw ValidationError("Standard output takes one transfer, so --keep needs a folder.")
        }
    }

    func run() async throws {
        try options.openLog()
        if let store { return try await receiveRecords(into: store) }
        let isStream = destination == "-"
        let report = TransferReport(
            verb: "Received", isJSON: options.json, isQuiet: options.quiet || isStream,
            events: isStream ? STDERR_FILENO : STDOUT_FILENO)
        try await TransferRun.run(report) {
            let place: any Destination
            do {
                place = isStream ? StreamDestination() : try FolderDestination(destination, overwrites: overwrite)
            } catch let failure as SystemFile.Failure {
                throw Refusal("The folder '\(destination)' cannot be opened: \(failure).")
            }
            let receiver = Receiver(
                destination: place, report: report, silence: isStream ? .seconds(86_400) : .seconds(600))
            try await receive(receiver, report)
        }
    }

    private func receive(_ receiver: Receiver, _ report: TransferReport) async throws {
        let meeting = try await Meeting.open(
            try options.open("receiver"), listens: !connect, named: options.transport, onWait: { report.wait($0) }
        ) { report.remark($0) }
        defer { meeting.close() }
        guard let listener = meeting.listener else { return try await receiveConnecting(meeting, receiver, report) }
        let wait = meeting.announce(within: keep ? nil : options.patience)
        defer { wait.cancel() }
        let reception = Reception(
            keeps: keep, patience: options.patience, canGoOn: { destination != "-" }, remark: { report.remark($0) })
        try await reception.run(listener) { comer, greeted in
            let channel = try options.channel(over: comer.link)
            defer { channel.close() }
            comer.onReplaced { _ in channel.close() }
            return try await received(
                channel, receiver,
                onGreeting: { identity throws(FerryError) in
                    try comer.greeted(as: identity)
                    wait.cancel()
                    greeted()
                }, onContent: { comer.proved() })
        }
    }

    /// From a sender that listens: it is connected to again when the connection is lost.
    private func receiveConnecting(_ meeting: Meeting, _ receiver: Receiver, _ report: TransferReport) async throws {
        var failure: (any Error)?
        while true {
            let link: any Link
            do { link = try await meeting.next(within: options.patience) } catch { throw failure ?? error }
            let channel = try options.channel(over: link)
            defer { channel.close() }
            do {
                guard case .lost(let error) = try await received(channel, receiver) else { return }
                failure = error
            } catch let silence as Receiver.Silence {
                report.remark("\(silence)")
                continue
            }
            try Task.checkCancellation()
            if destination == "-", let failure { throw failure }
            report.remark("The connection was lost; waiting for the sender to come again.")
        }
    }

    private func received(
        _ channel: TransferChannel, _ receiver: Receiver,
        onGreeting: @escaping @Sendable (PeerIdentity) throws(FerryError) -> Void = { _ in },
        onContent: @escaping @Sendable () -> Void = {}
    ) async throws -> Reception.Outcome {
        do {
            let isComplete = try await withTaskCancellationHandler {
                try await receiver.run(channel, onGreeting: onGreeting, onContent: onContent)
            } onCancel: {
                channel.close()
            }
            if isComplete { return .complete }
        } catch let error as FerryError where error.isLoss {
            return .lost(error)
        }
        return .lost(FerryError(.disconnected, "The sender left before it had sent everything."))
    }
}

/// What went wrong, in the words of the layer that noticed.
func explanation(of error: any Error) -> String { (error as? FerryError)?.message ?? "\(error)" }

/// Runs a transfer: signals, the words at the end, and the exit status.
enum TransferRun {
    static func run(_ report: TransferReport, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let ticking = Task { await report.tick() }
        defer { ticking.cancel() }
        let (result, signal) = await Interruptible.run(beforeExit: { report.clearLine() }, body)
        if let signal {
            report.end("interrupted")
            note("ferry: interrupted; the same command goes on where it was.")
            throw ExitCode(128 + signal)
        }
        switch result {
        case .success:
            report.end()
            if report.failures > 0 { throw ExitCode.failure }
        case .failure(let error):
            report.end(explanation(of: error))
            throw CommandFailure(explanation(of: error))
        }
    }
}
