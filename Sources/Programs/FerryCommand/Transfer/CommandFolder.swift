#if Records
    import FerryRecords
    import Foundation
    import Subprocess

    #if canImport(System)
        import System
    #else
        import SystemPackage
    #endif

    /// A folder of programs that a peer runs as commands: `restart` runs the folder's `restart`, with the command's body as its standard
    /// input; what it writes to standard output is the answer. One that ends with another status than 0 has failed, and the end of its
    /// standard error says why.
    struct CommandFolder: Sendable {
        /// The most bytes of an answer.
        static let longestAnswer = 1 << 20
        private static let longestReason = 800
        /// How long a program has to end after SIGTERM, before SIGKILL.
        private static let grace = Duration.seconds(5)

        private let folder: String

        /// - Throws: ``CommandFailure`` when `folder` is no folder.
        init(_ folder: String) throws {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
                throw CommandFailure("'\(folder)' is no folder. Name the folder with the programs that are commands.")
            }
            self.folder = URL(fileURLWithPath: folder).path
        }

        /// The handler of a program; nil where there is none of that name.
        func handler(_ name: String) -> CommandHandler? {
            var isFolder: ObjCBool = false
            let path = "\(folder)/\(name)"
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue,
                access(path, X_OK) == 0
            else { return nil }
            return .once { command in try await run(path, command) }
        }

        private func run(_ path: String, _ command: RemoteCommand) async throws -> [UInt8] {
            // Files: a program that does not read holds up no pipe, nor does one that leaves others behind with its output open.
            let (input, output, problems) = try (Self.nameless(command.body), Self.nameless(), Self.nameless())
            var options = PlatformOptions()
            options.createSession = true
            options.teardownSequence = [.gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: Self.grace)]
            let result = try await Subprocess.run(
                .path(.init(path)),
                environment: .inherit.updating([
                    "FERRY_COMMAND": command.name, "FERRY_COMMAND_ID": "\(command.id)",
                ]),
                workingDirectory: .init(folder), platformOptions: options,
                input: .fileDescriptor(.init(rawValue: input.fileDescriptor), closeAfterSpawningProcess: false),
                output: .fileDescriptor(.init(rawValue: output.fileDescriptor), closeAfterSpawningProcess: false),
                error: .fileDescriptor(.init(rawValue: problems.fileDescriptor), closeAfterSpawningProcess: false))
            try Task.checkCancellation()
            guard result.terminationStatus.isSuccess else {
                let size = try problems.seekToEnd()
                try problems.seek(toOffset: size - min(size, UInt64(Self.longestReason)))
                let reason = String(decoding: try problems.readToEnd() ?? Data(), as: UTF8.self)
                throw CommandFailure("It ended with \(Self.text(result.terminationStatus)). \(reason)")
            }
            let size = try output.seekToEnd()
            guard size <= UInt64(Self.longestAnswer) else {
                throw CommandFailure(
                    "It was done, but wrote \(size) bytes, and an answer has at most \(Self.longestAnswer).")
            }
            try output.seek(toOffset: 0)
            return Array(try output.readToEnd() ?? Data())
        }

        private static func text(_ status: TerminationStatus) -> String {
            switch status {
            case .exited(let code): "\(code)"
            case .signaled(let signal): "signal \(signal)"
            }
        }

        /// A file without a name, at its beginning.
        private static func nameless(_ bytes: [UInt8] = []) throws -> FileHandle {
            var template = Array("\(NSTemporaryDirectory())ferry-XXXXXX".utf8CString)
            let descriptor = mkstemp(&template)
            guard descriptor >= 0 else {
                throw CommandFailure("No temporary file can be made: \(SystemFile.Failure())")
            }
            unlink(template)
            let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            if !bytes.isEmpty {
                try file.write(contentsOf: Data(bytes))
                try file.seek(toOffset: 0)
            }
            return file
        }
    }
#endif
