import Foundation
import Synchronization
import TestSupport
import Testing

@testable import BusinessCard

/// The program itself, as people run it.
@Suite(.tags(.program), .timeLimit(.minutes(5))) struct ProcessTests {
    @Test func withoutArgumentsACardCrossesTheRadio() async throws {
        let run = try await Program().run([])
        #expect(run.status == 0)
        #expect(run.errors == "")
        #expect(run.output.hasPrefix("Card to send\n  Name            Ada Lovelace\n"))
        #expect(run.output.contains("\nTransport         loopback, 7.5 ms between connection events, -24 dBm\n"))
        #expect(run.output.contains("\nChunks sent       13 (11 x 20, 1 x 7, 1 x 3 bytes; 230 in all)\n"))
        #expect(run.output.contains("\nSending  227 of 227 bytes\n"))
        #expect(run.output.contains("\nCard that arrived\n  Name            Ada Lovelace\n"))
        #expect(run.output.hasSuffix("\nThe card that arrived equals the card that was sent.\n"))
        #expect(!run.output.contains("\u{1B}"))
        let waits = try #require(run.output.firstMatch(of: #/\nWaited for ready  (\d+) time/#))
        #expect(try #require(Int(waits.1)) > 0)
    }

    @Test func aCardGoesFromFileToFile() async throws {
        try await withFolder { folder in
            try CardFile.save(CardFormatTests.full, to: folder + "/in.vcf")
            let run = try await Program().run([
                "--card", folder + "/in.vcf", "--save", folder + "/out.plist", "--codec", "plist",
            ])
            #expect(run.status == 0, "\(run.errors)")
            #expect(try CardFile.load(folder + "/out.plist") == CardFormatTests.full)
        }
    }

    @Test func aCardGoesFromProcessToProcess() async throws {
        try await withFolder { folder in
            let program = try Program()
            let socket = "unix:\(folder)/s"
            // Each gives up long before the suite does, and says what it has waited for.
            async let serving = program.run(
                ["serve", "--transport", socket, "--timeout", "120"], signal: SIGINT,
                after: "Visitor 1 was sent the card")
            let received = try await program.run([
                "receive", "--transport", socket, "--timeout", "120", "--save", folder + "/card.json",
            ])
            let served = try await serving
            #expect(received.status == 0, "\(received.output) \(received.errors)")
            #expect(served.status == 130, "\(served.output) \(served.errors)")
            #expect(try CardFile.load(folder + "/card.json") == .example)
        }
    }

    @Test func aBadCardFileIsToldBeforeAnythingIsSent() async throws {
        try await withFolder { folder in
            try Data("{\n\"firstName\": Ada}".utf8).write(to: URL(fileURLWithPath: folder + "/bad.json"))
            let run = try await Program().run(["--card", folder + "/bad.json"])
            #expect(run.status == 1)
            #expect(run.output == "")
            #expect(run.errors.hasPrefix("business-card: \(folder)/bad.json: "))
            #expect(run.errors.contains("line 2"))
            let missing = try await Program().run(["--card", folder + "/none.json"])
            #expect(missing.status == 1)
            #expect(missing.errors.contains("No such file or directory"))
            let unsaved = try await Program().run(["--save", folder + "/none/card.json"])
            #expect(unsaved.status == 1)
            #expect(unsaved.output == "")
            #expect(unsaved.errors.contains("there is no folder \(folder)/none"))
        }
    }

    @Test func aSignalOutsideTheWindowFails() async throws {
        var errors = ""
        // Longer each time, until an advertisement has been heard.
        var timeout = 0.2
        while !errors.contains("-24 dBm") {
            let run = try await Program().run(["--rssi", "-90...-60", "--timeout", "\(timeout)"])
            timeout *= 4
            #expect(run.status == 1)
            #expect(!run.output.contains("equals"))
            errors = run.errors
        }
        #expect(errors.contains("outside the signal-strength window -90...-60 dBm: -24 dBm"))
    }

    @Test(arguments: [["--chunk", "0"], ["--frob"], ["serve"], ["receive"], ["--transport", "bluez"]])
    func wrongUsageIsStatus64(_ arguments: [String]) async throws {
        let run = try await Program().run(arguments)
        #expect(run.status == 64)
        #expect(run.output == "")
        #expect(run.errors.contains("Error: "))
    }

    @Test func helpIsHelp() async throws {
        let run = try await Program().run(["--help"])
        #expect(run.status == 0)
        for option in ["--card", "--save", "--framing", "--codec", "--compress", "--chunk", "--rssi", "--log"] {
            #expect(run.output.contains(option))
        }
    }

    @Test(arguments: [(SIGINT, Int32(130)), (SIGTERM, Int32(143))])
    func aSignalEndsItCleanly(_ signal: Int32, _ status: Int32) async throws {
        // Two bytes each 500 ms: a minute in all, which the signal cuts short.
        let slow = ["--framing", "length", "--chunk", "1", "--interval", "500", "--log"]
        let run = try await Program().run(slow, signal: signal, after: "sent")
        #expect(run.ending == .exited(status))
        #expect(run.errors == "business-card: interrupted\n")
        #expect(!run.output.contains("equals"))
    }

    /// Its output goes into a pipe that is full, so that its console waits to write and holds its lock.
    @Test func aSignalEndsItThoughItsOutputIsNotRead() async throws {
        let output = Pipe()
        let descriptor = output.fileHandleForWriting.fileDescriptor
        let flags = fcntl(descriptor, F_GETFL)
        #expect(fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0)
        for size in [4096, 1] {
            let bytes = [UInt8](repeating: 0x2E, count: size)
            while write(descriptor, bytes, size) == size {}
        }
        #expect(errno == EAGAIN && fcntl(descriptor, F_SETFL, flags) == 0)
        let process = try Program().start([], output: .pipe(output))
        // The later of the two handlers; it waits to write by then, or soon.
        try await until {
            let status = try String(contentsOfFile: "/proc/\(process.identifier)/status", encoding: .utf8)
            let mask = try #require(status.firstMatch(of: #/\nSigCgt:\s*([0-9a-f]+)/#))
            return try #require(UInt64(mask.1, radix: 16)) & 1 << (UInt64(SIGTERM) - 1) != 0
        }
        process.signal(SIGINT)
        #expect(await process.ended() == .exited(130))
    }

    /// As in `business-card | head`: the system ends it, without a word.
    @Test func aReaderThatGoesEndsItSilently() async throws {
        let (output, errors) = (Pipe(), Pipe())
        try output.fileHandleForReading.close()
        let process = try Program().start([], output: .pipe(output), errors: .pipe(errors))
        #expect(await process.ended() == .signalled(SIGPIPE))
        #expect(errors.fileHandleForReading.readDataToEndOfFile().isEmpty)
    }

    @Test func aFullDiskIsNotASuccess() async throws {
        let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
        let run = try await Program().run([], output: full)
        #expect(run.status == 1)
        #expect(run.errors == "business-card: standard output could not be written\n")
    }
}

/// Runs the built program, which the build puts beside the test bundle.
private struct Program {
    struct Run {
        var ending: ChildProcess.Ending
        var status: Int32 { ending.status }
        var output: String
        var errors: String
    }

    private let url: URL

    init() throws {
        let bundle = try #require(
            CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? Bundle.main.executableURL?.path)
        url = URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("business-card")
        try #require(FileManager.default.isExecutableFile(atPath: url.path), "\(url.path) has not been built")
    }

    /// Starts the program and leaves it to the caller.
    func start(
        _ arguments: [String], output: ChildProcess.Stream, errors: ChildProcess.Stream = .inherited
    ) throws -> ChildProcess {
        try ChildProcess(url.path, arguments, output: output, errors: errors)
    }

    /// Runs the program to its end, away from the threads that tests run on.
    ///
    /// - Parameters:
    ///   - signal: a signal to send once `mark` has been printed.
    ///   - output: where its output goes instead of into the result.
    func run(
        _ arguments: [String], signal: Int32? = nil, after mark: String = "", output: FileHandle? = nil
    ) async throws -> Run {
        let (outputPipe, errorPipe) = (Pipe(), Pipe())
        let process = try ChildProcess(
            url.path, arguments, output: output.map { .file($0) } ?? .pipe(outputPipe), errors: .pipe(errorPipe))
        let onMark: @Sendable () -> Void = { if let signal { process.signal(signal) } }
        async let printed = output == nil ? Self.read(outputPipe, until: mark, onMark: onMark) : ""
        async let errors = Self.read(errorPipe)
        let (text, complaint) = await (printed, errors)
        return Run(ending: await process.ended(), output: text, errors: complaint)
    }

    /// Reads a pipe to its end, and calls `onMark` the first time that what was read contains `mark`.
    private static func read(
        _ pipe: Pipe, until mark: String = "", onMark: @escaping @Sendable () -> Void = {}
    ) async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var text = Data()
                var isWaiting = !mark.isEmpty
                while case let more = pipe.fileHandleForReading.availableData, !more.isEmpty {
                    text += more
                    if isWaiting, String(decoding: text, as: UTF8.self).contains(mark) {
                        isWaiting = false
                        onMark()
                    }
                }
                continuation.resume(returning: String(decoding: text, as: UTF8.self))
            }
        }
    }
}
