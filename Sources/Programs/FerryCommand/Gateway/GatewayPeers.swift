#if NATS && Records
    import ArgumentParser
    import Ferry
    import FerryGateway
    import FerryNATS

    #if Seal
        import FerrySeal
    #endif

    extension GatewayCommand {
        /// `ferry gateway peers`: whom a gateway's store knows.
        struct Peers: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract:
                    "Lists the peers that a gateway's store knows, with the key and the store that each is bound to.",
                discussion:
                    "One process at a time has a store open: end the gateway first. ferry gateway keys asks the server."
            )

            @OptionGroup var store: Outbox.StoreOption

            func run() async throws { print(try await Outbox.peersText(store), terminator: "") }
        }

        /// `ferry gateway forget`: a peer's place in a gateway's store.
        struct Forget: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lets a peer come with another key or store, and gives its place back if it left nothing.",
                discussion: """
                    What a peer says of itself is bound to its key, and otherwise to the first store that comes under its name. A device \
                    that was replaced is refused until its old name is forgotten. To keep a key out, use ferry gateway revoke.
                    """)

            @OptionGroup var store: Outbox.StoreOption
            @Argument(help: "The peer's name, as ferry gateway peers has it.") var peer: String

            func run() async throws { print(try await Outbox.forgetText(store, peer)) }
        }

        /// The list of keys that a fleet's gateways share.
        struct KeyList: ParsableArguments {
            @OptionGroup var servers: Servers
            @OptionGroup var certificates: NATSCertificateOptions
            @Option(
                help:
                    "The bucket with the list, as the gateways' --allow has it. (default: allow of the configuration, or ferry-keys)"
            )
            var bucket: String?

            func use<Value: Sendable>(
                _ body: (AllowedKeys, NATSConnection) async throws(FerryError) -> Value
            ) async throws -> Value {
                let settings = try servers.settings()
                var servers = try settings.gateway().servers
                servers.name = "ferry gateway"
                certificates.apply(to: &servers)
                // A bucket that is not there yet is made as the gateways would make it.
                var configuration = try settings.allowed(in: bucket ?? settings.trust?.allow ?? "ferry-keys")
                configuration.servers = servers
                let keys = AllowedKeys(configuration)
                do throws(FerryError) {
                    return try await NATSConnection.with(servers) { connection throws(FerryError) in
                        try await body(keys, connection)
                    }
                } catch { throw CommandFailure(error.message) }
            }

            static let help = ArgumentHelp(
                "The key, as ferry key prints it there, or its fingerprint.", valueName: "key")

            /// The fingerprint of a key as people have it: the public key, or the fingerprint in groups, with spaces or hyphens, in
            /// either case.
            static func fingerprint(_ text: String) throws -> String {
                let digits = text.lowercased().filter { $0 != " " && $0 != "-" }
                // A fingerprint may begin so too.
                if digits.hasPrefix("ferry1"), digits.utf8.count > 32 {
                    do { return try fingerprint(ofKey: text) } catch {
                        throw ValidationError("\(error.message) A name is a separate argument, behind the key.")
                    }
                }
                do { try AllowedKeys.check(digits) } catch {
                    throw ValidationError(
                        "\(text.debugDescription) is neither a public key (ferry1..., as ferry key prints it) nor the fingerprint of one "
                            + "(32 digits, as ferry key --fingerprint prints them). A name is a separate argument, behind it."
                    )
                }
                return digits
            }

            private static func fingerprint(ofKey text: String) throws(FerryError) -> String {
                #if Seal
                    try PublicKey(text: text).fingerprint.description
                #else
                    throw FerryError(
                        .invalidConfiguration,
                        "This ferry was built without the trait Seal and reads no keys. Give the fingerprint, which ferry key shows."
                    )
                #endif
            }
        }

        /// `ferry gateway keys`: the list.
        struct Keys: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lists the keys whose peers a fleet's gateways take.")

            @OptionGroup var list: KeyList

            func run() async throws {
                let entries = try await list.use { keys, connection throws(FerryError) in
                    try await keys.entries(on: connection)
                }
                guard !entries.isEmpty else { return print("No key is on the list.") }
                let rows = entries.map { entry in
                    switch entry.standing {
                    case .allowed(let name): [Outbox.printable(entry.fingerprint), "allowed", Outbox.printable(name)]
                    case .revoked(let name): [Outbox.printable(entry.fingerprint), "revoked", Outbox.printable(name)]
                    }
                }
                print(Outbox.aligned([["fingerprint", "standing", "name"]] + rows), terminator: "")
            }
        }

        /// `ferry gateway allow`: puts a key on the list.
        struct Allow: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Puts a key on the list of a fleet's gateways, which take its peer from then on.")

            @OptionGroup var list: KeyList
            @Argument(help: KeyList.help, transform: KeyList.fingerprint) var fingerprint: String
            @Argument(help: "What the peer is called, for people.") var name = ""

            func run() async throws {
                try await list.use { keys, connection throws(FerryError) in
                    try await keys.set(.allowed(name: name), of: fingerprint, on: connection)
                }
                print("\(fingerprint) is allowed")
            }
        }

        /// `ferry gateway revoke`: keeps a key's peer out.
        struct Revoke: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Has all gateways of a fleet refuse a key's peer, within 5 s where they reach the server.",
                discussion:
                    "An exchange that runs is ended. A gateway that reaches no server learns of it when it does.")

            @OptionGroup var list: KeyList
            @Argument(help: KeyList.help, transform: KeyList.fingerprint) var fingerprint: String
            @Argument(help: "What the peer is called, for people.") var name = ""

            func run() async throws {
                try await list.use { keys, connection throws(FerryError) in
                    try await keys.set(.revoked(name: name), of: fingerprint, on: connection)
                }
                print("\(fingerprint) is revoked")
            }
        }
    }
#endif
