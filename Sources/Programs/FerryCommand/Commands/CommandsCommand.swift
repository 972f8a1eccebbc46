#if NATS && Records
    import ArgumentParser
    import Ferry
    import FerryGateway
    import FerryLab
    import FerryRecords
    import Foundation

    /// `ferry command`: commands and files for peers, through a gateway.
    struct CommandsCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "command",
            abstract: "Sends commands and files to peers through their gateway, and waits for the answers.",
            discussion: """
                ferry gateway --downlink ferry-down ...                                     # a gateway that carries messages down
                ferry send --store s.ferry --inbox in.txt --commands run --files new ...    # a peer: programs in run, files into new
                ferry command call press-7 restart                                          # runs the peer's run/restart
                ferry command file press-7 firmware.bin                                     # becomes the peer's new/firmware.bin

                A command runs at most once and has one answer, also when a part of the way is killed or a link is lost.
                """,
            subcommands: [Call.self, File.self])

        /// Where commands go, and answers come from.
        struct Way: ParsableArguments {
            @OptionGroup var options: NATSServerOptions
            @Option(help: "The stream of messages for peers, as the gateway's --downlink has it.") var downlink =
                "ferry-down"
            @Option(help: "What the subjects of messages for peers begin with.") var downlinkPrefix = "ferry.commands"
            @Option(help: "The stream that gateways publish to.") var stream = "ferry"
            @Option(help: "What the subjects of records begin with.") var prefix = "ferry.records"

            var configuration: PeerCommands.Configuration {
                var configuration = PeerCommands.Configuration(servers: options.nats)
                configuration.servers = options.configuration("ferry command")
                (configuration.downlink, configuration.downlinkPrefix) = (downlink, downlinkPrefix)
                (configuration.stream, configuration.prefix) = (stream, prefix)
                return configuration
            }
        }

        /// How long a command has.
        enum Limit {
            static let longest = 30.0 * 86_400

            static func check(_ seconds: Double) throws {
                guard seconds > 0, seconds <= longest else {
                    throw ValidationError(
                        "--within \(seconds) is out of range; give more than 0 and at most \(Int(longest)) s.")
                }
            }
        }

        /// `ferry command call`.
        struct Call: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Has a peer run a command, and prints its answer.",
                discussion: """
                    Ends with 0 when the command was done, and with 1 otherwise: standard error says whether it failed, was not begun (its \
                    limit was over by the peer's clock, or the peer does not know it), was interrupted, or has not been answered.
                    """)

            @OptionGroup var way: Way
            @Argument(help: "The peer's name at the gateway, or its public key.") var peer: String
            @Argument(help: "The command's name: a program in the peer's folder of commands.") var name: String
            @Argument(help: "The command's body, as text; - is standard input.") var body: String?
            @Option(help: ArgumentHelp("The peer begins it within this time, or not at all.", valueName: "seconds"))
            var within = 60.0

            func validate() throws {
                try Limit.check(within)
                guard RemoteCommand.isName(name) else {
                    throw ValidationError(
                        "'\(name)' is no command's name: 1 to \(RemoteCommand.longestName) ASCII letters, digits, dots, hyphens and "
                            + "underscores, and no dot at the beginning.")
                }
            }

            func run() async throws {
                let peer = try StorePeer.name(peer)
                let bytes = try await input()
                let answer = try await PeerCommands.with(way.configuration) { commands throws(FerryError) in
                    try await commands.call(name, bytes, of: peer, within: .seconds(within))
                }
                guard answer.outcome == .done else {
                    throw CommandFailure("\(peer), \(name): \(Self.words(answer.outcome)). \(answer.text)")
                }
                // On a terminal without what would move its cursor.
                let printed = isatty(STDOUT_FILENO) != 0 ? Array("\(answer.text)\n".utf8) : answer.body
                try await SystemFile.run { try SystemFile(STDOUT_FILENO, isOwned: false).write(printed[...]) }
            }

            private func input() async throws -> [UInt8] {
                guard let body else { return [] }
                guard body == "-" else { return Array(body.utf8) }
                let bytes = try await DeviceOptions.read("-", limit: 1 << 20)
                guard bytes.count <= 1 << 20 else { throw CommandFailure("A command takes at most 1 MiB.") }
                return bytes
            }

            static func words(_ outcome: CommandAnswer.Outcome) -> String {
                switch outcome {
                case .done: "done"
                case .failed: "it failed"
                case .expired: "it was not begun in time"
                case .unknown: "it is unknown there"
                case .interrupted: "it was interrupted"
                case .refused: "it was refused"
                }
            }
        }

        /// `ferry command file`.
        struct File: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Brings a file to a peer's folder of files.",
                discussion: """
                    The same command goes on where an earlier one was ended. A file of that name is replaced when all has arrived and its \
                    checksum is right.
                    """)

            @OptionGroup var way: Way
            @Argument(help: "The peer's name at the gateway, or its public key.") var peer: String
            @Argument(help: "The file.", completion: .file()) var file: String
            @Option(help: "Its name at the peer; its own unless given.") var name: String?
            @Option(help: ArgumentHelp("All of it arrives within this time, or it fails.", valueName: "seconds"))
            var within = 3600.0
            @Option(help: ArgumentHelp("How many bytes go into one message.", valueName: "bytes")) var piece = 32 << 10

            func validate() throws {
                try Limit.check(within)
                guard (64...1 << 20).contains(piece) else {
                    throw ValidationError("--piece \(piece) is out of range; give 64 to \(1 << 20) bytes.")
                }
            }

            func run() async throws {
                let peer = try StorePeer.name(peer)
                let source: SystemFile
                let content: TransferContent
                do {
                    source = try SystemFile.opened(file)
                    content = try await SystemFile.run { try source.content() } ?? TransferContent()
                } catch { throw CommandFailure("'\(file)' cannot be read: \(error).") }
                let offered = try OfferedFile(
                    name ?? URL(fileURLWithPath: file).lastPathComponent, size: content.count,
                    checksum: content.checksum)
                var configuration = way.configuration
                configuration.pieceSize = piece
                let bar = ProgressBar(total: Int(clamping: content.count))
                defer { bar.finish() }
                let ticking = Task { await bar.tick() }
                defer { ticking.cancel() }
                try await PeerCommands.with(configuration) { commands throws(FerryError) in
                    try await commands.bring(
                        offered, to: peer, within: .seconds(within), progress: { bar.show(Int(clamping: $0)) },
                        read: { offset, count throws(FerryError) in try await Self.read(source, offset, count) })
                }
            }

            private static func read(_ file: SystemFile, _ offset: UInt64, _ count: Int) async throws(FerryError)
                -> [UInt8]
            {
                do {
                    return try await SystemFile.run {
                        try file.seek(to: offset)
                        var bytes = [UInt8](repeating: 0, count: count)
                        let filled = try bytes.withUnsafeMutableBytes { try file.fill($0) }
                        return Array(bytes.prefix(filled))
                    }
                } catch { throw FerryError(.unreadableFile, "The file cannot be read on: \(error).", cause: error) }
            }
        }
    }
#else
    import ArgumentParser

    /// `ferry command`: not part of this build.
    struct CommandsCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "command",
            abstract: "Sends commands and files to peers. Not part of this build: it needs the traits Records and NATS."
        )

        @Argument(parsing: .captureForPassthrough) var arguments: [String] = []

        func run() throws {
            throw ValidationError(
                "Commands are not part of this build. Build with the traits Records and NATS: swift run --traits Records,NATS ferry "
                    + "command ...")
        }
    }
#endif
