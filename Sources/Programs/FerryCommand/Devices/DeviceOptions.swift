import ArgumentParser
import Ferry
import FerryBluetooth
import FerryTransports
import Foundation

/// The options of the commands that talk to a device in its format.
struct DeviceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("What carries the bytes: \(forms.joined(separator: ", ")).", valueName: "transport"),
        transform: TransferOptions.parse)
    var transport: NamedTransport

    @Option(help: ArgumentHelp("How long to look for the device and wait for its connection.", valueName: "seconds"))
    var timeout = 15.0

    @Option(help: ArgumentHelp("The name that the device advertises. (default: any device with the service)"))
    var device: String?

    private static let forms = NamedTransport.forms { $0.name != "loopback" }

    func validate() throws {
        guard (0.1...3600).contains(timeout) else {
            throw ValidationError("--timeout is \(timeout); give 0.1 to 3600 seconds.")
        }
    }

    /// The transport, with its links laid over this service where they are GATT's.
    func open(_ layout: GATTConfiguration, _ role: String) throws(FerryError) -> any Transport {
        var layout = layout
        layout.localName = device
        var options = RadioOptions()
        options.onAdvice = { note($0) }
        return try transport.open(layout, options)(role)
    }

    /// Connects to a device with this service, and says so while it waits.
    func connect(_ layout: GATTConfiguration) async throws -> any Link {
        try self.transport.requireConnectable()
        let transport = try open(layout, "client")
        let limit = Duration.seconds(timeout)
        let who = device.map { $0.forTerminal.debugDescription } ?? "a device"
        let wait = WaitNotice.schedule("Waiting \(WaitNotice.limit(limit)) to connect to \(who) at \(self.transport).")
        defer { wait.cancel() }
        return try await transport.connect(timeout: limit)
    }

    /// Refuses a file that cannot be read or sent, before a device is waited for. `-` is standard input.
    static func check(_ path: String, mayBeEmpty: Bool = false) throws {
        guard path != "-" else { return }
        let stamp: SystemFile.Stamp
        do throws(SystemFile.Failure) { stamp = try SystemFile.stamp(ofReadable: path) } catch {
            throw CommandFailure("The file '\(path)' cannot be read: \(error).")
        }
        guard stamp.kind != S_IFDIR else { throw CommandFailure("'\(path)' is a folder. Name a file in it.") }
        if !mayBeEmpty, stamp.kind == S_IFREG, stamp.size == 0 {
            throw CommandFailure("The file '\(path)' is empty: there is nothing to send.")
        }
    }

    /// Runs the work until it ends or a signal comes: exit status 0, 1 with the reason, 130 after Ctrl-C.
    static func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let (result, signal) = await Interruptible.run(body)
        if let signal { throw ExitCode(128 + signal) }
        if case .failure(let error) = result {
            if error is ExitCode || error is ValidationError { throw error }
            throw CommandFailure(explanation(of: error))
        }
    }

    /// Reads a whole file; `-` is standard input.
    ///
    /// - Parameter limit: the most bytes.
    static func read(_ path: String, limit: Int) async throws -> [UInt8] {
        try await SystemFile.run {
            do throws(SystemFile.Failure) {
                let file =
                    path == "-" ? SystemFile(STDIN_FILENO, isOwned: false) : try SystemFile.opened(path)
                var bytes: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 64 << 10)
                while true {
                    var failure: SystemFile.Failure?
                    let count = buffer.withUnsafeMutableBytes { buffer in
                        do throws(SystemFile.Failure) { return try file.readSome(buffer) } catch {
                            failure = error
                            return 0
                        }
                    }
                    if let failure { throw failure }
                    if count == 0 { return bytes }
                    bytes += buffer.prefix(count)
                    if bytes.count > limit { return bytes }
                }
            } catch {
                throw CommandFailure("The file '\(path)' cannot be read: \(error).")
            }
        }
    }

    /// Writes a whole file; `-` is standard output.
    static func write(_ bytes: [UInt8], to path: String) async throws {
        try await SystemFile.run {
            do throws(SystemFile.Failure) {
                guard path != "-" else { return try SystemFile(STDOUT_FILENO, isOwned: false).write(bytes[...]) }
                let descriptor = Foundation.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
                guard descriptor >= 0 else { throw SystemFile.Failure() }
                try SystemFile(descriptor).write(bytes[...])
            } catch {
                throw CommandFailure("The file '\(path)' cannot be written: \(error).")
            }
        }
    }
}

extension [UInt8] {
    /// The bytes of pairs of hexadecimal digits; nil for anything else.
    init?(hexadecimal text: String) {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2), text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).compactMap { place in
            UInt8(String(decoding: digits[place..<place + 2], as: UTF8.self), radix: 16)
        }
    }
}
