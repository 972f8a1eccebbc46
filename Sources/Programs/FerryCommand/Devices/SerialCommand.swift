import ArgumentParser
import Ferry
import FerryLab
import FerryTransports
import FerryUART
import Foundation

/// `ferry serial`: a terminal, or a pipe, to a device with the Nordic UART service.
struct Serial: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Connects a terminal or a pipe to a device with the Nordic UART service.",
        discussion: """
            ferry serial --transport hci:user:0                       # a terminal; Ctrl-C ends it
            echo AT | ferry serial --framing lines --transport hci:user:0

            With --framing raw bytes go as they come, and a terminal sends each key at once. With lines, slip and cobs each line of \
            input is a message, and each message that arrives is printed with a line feed behind it. A message that is damaged is \
            told on standard error, and the next one goes on.

            After the input's end it waits for answers until none has come for --wait seconds. Ends with 0 then, and when the device \
            disconnects between two messages; 1 when something went wrong, 64 for wrong usage, 130 after Ctrl-C.
            """)

    enum FramingChoice: String, CaseIterable, ExpressibleByArgument {
        case raw, lines, slip, cobs

        var framing: any Framing {
            switch self {
            case .raw: UARTStream()
            case .lines: UARTFraming(.lines(.lineFeed))
            case .slip: UARTFraming(.slip)
            case .cobs: UARTFraming(.cobs)
            }
        }
    }

    @OptionGroup var options: DeviceOptions

    @Option(help: "How messages are told apart: raw for a stream without messages.")
    var framing = FramingChoice.raw

    @Flag(help: "With --framing raw and lines: send 0D 0A for each line feed.")
    var crlf = false

    @Option(
        help: ArgumentHelp(
            "The most bytes in a chunk, for devices with small buffers. (default: what the link takes)",
            valueName: "bytes"))
    var chunk: Int?

    @Option(help: ArgumentHelp("How long to wait for more after the input's end.", valueName: "seconds"))
    var wait = 1.0

    @Flag(help: "Be the device: wait to be connected to.")
    var listen = false

    func validate() throws {
        if !listen { try options.transport.requireConnectable() }
        guard (0...86_400).contains(wait) else {
            throw ValidationError("--wait is \(wait); give 0 to 86400 seconds.")
        }
        guard (1...65_535).contains(chunk ?? 1) else { throw ValidationError("Give a chunk of 1 to 65535 bytes.") }
        if crlf, framing == .slip || framing == .cobs {
            throw ValidationError("--crlf is for --framing raw and lines: SLIP and COBS end messages otherwise.")
        }
    }

    func run() async throws {
        let terminal = framing == .raw && !listen ? TerminalKeys.begin() : nil
        defer { terminal?.end() }
        let (result, signal) = await Interruptible.run(grace: 1, beforeExit: { terminal?.end() }) { try await talk() }
        terminal?.end()
        if let signal { throw ExitCode(128 + signal) }
        if case .failure(let error) = result {
            if error is ExitCode { throw error }
            throw CommandFailure(explanation(of: error))
        }
    }

    private func talk() async throws {
        let transport = try options.open(.nordicUART, listen ? "device" : "client")
        let meeting = try await Meeting.open(
            transport, listens: listen, named: options.transport, onWait: { note("ferry: \($0)") }
        ) { note("ferry: \($0)") }
        let link = try await meeting.next(within: .seconds(options.timeout))
        defer { meeting.close() }
        let framing: any Framing =
            crlf && self.framing == .lines ? UARTFraming(.lines(.carriageReturnLineFeed)) : self.framing.framing
        let channel = try MessageChannel(over: link, codec: BytesCodec(), framing: framing, chunkSize: chunk)
        defer { channel.close() }
        let activity = LastActivity()
        // Each in a task: a read that waits for a key cannot be called off, and nothing waits for it.
        let (ends, source) = AsyncStream<Result<End, any Error>>.makeStream()
        let tasks = [
            Self.run(.device, source) { try await print(channel, activity) },
            Self.run(.input, source) { try await sendInput(channel) },
        ]
        defer { for task in tasks { task.cancel() } }
        for await end in ends {
            guard try end.get() == .input else { return }
            activity.touch()
            let silence = Self.run(.device, source) {
                while activity.silence < .seconds(wait) { try await Task.sleep(for: .milliseconds(20)) }
            }
            defer { silence.cancel() }
            for await end in ends {
                _ = try end.get()
                return
            }
        }
    }

    /// The side that has ended: the input, or the device.
    private enum End { case input, device }

    /// Does the work in a task, and tells how it ended.
    private static func run(
        _ end: End, _ ends: AsyncStream<Result<End, any Error>>.Continuation,
        _ work: @escaping @Sendable () async throws -> Void
    ) -> Task<Void, Never> {
        Task {
            do {
                try await work()
                ends.yield(.success(end))
            } catch {
                ends.yield(.failure(error))
            }
        }
    }

    private func print(_ channel: MessageChannel<[UInt8], [UInt8]>, _ activity: LastActivity) async throws {
        let output = SystemFile(STDOUT_FILENO, isOwned: false)
        let end: [UInt8] = framing == .raw ? [] : [0x0A]
        for await result in channel.results {
            activity.touch()
            switch result {
            case .success(let message):
                try await SystemFile.run {
                    do throws(SystemFile.Failure) { try output.write((message + end)[...]) } catch {
                        if error.number == EPIPE { throw ExitCode.success }
                        throw CommandFailure(StandardOutput.problem)
                    }
                }
            case .failure(let error):
                // The reason of the end is the last.
                if channel.closeReason == nil { note(error.message) } else if error.code != .closed { throw error }
            }
        }
    }

    private func sendInput(_ channel: MessageChannel<[UInt8], [UInt8]>) async throws {
        let input = SystemFile(STDIN_FILENO, isOwned: false)
        var line: [UInt8] = []
        while true {
            let bytes = try await SystemFile.run { () throws -> [UInt8] in
                var failure: SystemFile.Failure?
                let bytes = [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
                    do throws(SystemFile.Failure) {
                        count = try input.readSome(UnsafeMutableRawBufferPointer(buffer))
                    } catch { failure = error }
                }
                if let failure { throw CommandFailure("Standard input cannot be read: \(failure).") }
                return bytes
            }
            guard framing != .raw else {
                if bytes.isEmpty { return }
                try await channel.send(crlf ? bytes.flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] } : bytes)
                continue
            }
            if bytes.isEmpty {
                if !line.isEmpty { try await channel.send(line) }
                return
            }
            line += bytes
            guard line.count <= 16 << 20 else { throw CommandFailure("A line of the input has more than 16 MiB.") }
            var parts = line.split(separator: 0x0A, omittingEmptySubsequences: false)
            line = Array(parts.removeLast())
            for part in parts where framing != .slip || !part.isEmpty {
                try await channel.send(Array(part.last == 0x0D ? part.dropLast() : part))
            }
        }
    }
}

/// A terminal that hands over each key at once and shows none by itself. Ctrl-C still ends the program.
final class TerminalKeys: Sendable {
    private let before: termios

    private init(_ before: termios) { self.before = before }

    /// Nil where standard input is no terminal.
    static func begin() -> TerminalKeys? {
        var settings = termios()
        guard isatty(STDIN_FILENO) != 0, tcgetattr(STDIN_FILENO, &settings) == 0 else { return nil }
        let keys = TerminalKeys(settings)
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        return tcsetattr(STDIN_FILENO, TCSANOW, &settings) == 0 ? keys : nil
    }

    /// As it was before. It may be called again.
    func end() {
        var settings = before
        tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    }
}
