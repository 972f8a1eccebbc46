#if Seal
    import ArgumentParser
    import Ferry
    import FerrySeal
    import FerryTransports
    import Foundation

    /// `ferry key`: makes this side's key and shows its public half.
    struct KeyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "key", abstract: "Shows this side's public key; makes the key when there is none.",
            discussion: """
                The key says who this side is. The command prints its public half, which may be seen by everybody: give it to the other \
                side, which runs ferry trust with it. The secret half stays in its file, which only its owner can read.

                Two people on the telephone compare the fingerprint.
                """)

        @Option(help: ArgumentHelp("The key's file. (default: ~/.config/ferry/key)", valueName: "file"))
        var identity: String?

        @Flag(help: "Print the fingerprint, and not the key.")
        var fingerprint = false

        func run() async throws {
            let key = try TrustFolder(identity: identity).key { note("ferry: \($0)") }
            if fingerprint { return print(key.publicKey.fingerprint.grouped) }
            print(key.publicKey)
            note("ferry: Fingerprint \(key.publicKey.fingerprint.grouped).")
        }
    }

    /// `ferry trust`: the list of keys that may come and are believed.
    struct TrustCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "trust", abstract: "Trusts the key of another side, or lists the trusted keys.",
            discussion: """
                Who is trusted may send to this user's ferry receive and ferry gateway over a network, and is believed when ferry send \
                connects. Without a key it lists who is trusted. With --remove a key is trusted no longer: the next connection of its \
                owner is refused, and one that is open goes on until it ends.
                """)

        @Argument(help: "The other side's public key, as 'ferry key' prints it there; with --remove its name does too.")
        var key: String?

        @Argument(help: "What it is called here.")
        var name: [String] = []

        @Flag(help: "Trust the key no longer.")
        var remove = false

        @Option(
            help: ArgumentHelp("The file of the trusted keys. (default: ~/.config/ferry/trusted)", valueName: "file"))
        var trusted: String?

        func validate() throws {
            if remove && key == nil { throw ValidationError("Name the key that is trusted no longer.") }
            if remove && !name.isEmpty {
                throw ValidationError("--remove takes one key, or one name in quotation marks.")
            }
        }

        func run() async throws {
            let folder = TrustFolder(trusted: trusted)
            guard let key else { return print(Self.lines(try folder.trusted()), terminator: "") }
            if remove {
                let found = try folder.key(named: key)
                guard try folder.distrust(found) else {
                    throw CommandFailure("The key \(found) is not in \(folder.trustedPath).")
                }
                return print("\(found.fingerprint.grouped) is trusted no longer.")
            }
            let theirs: PublicKey
            do throws(FerryError) { theirs = try PublicKey(text: key) } catch { throw ValidationError(error.message) }
            let name = name.joined(separator: " ")
            guard try folder.trust(theirs, name: name) else {
                return print("\(theirs.fingerprint.grouped) is trusted already.")
            }
            print("\(theirs.fingerprint.grouped) is trusted\(name.isEmpty ? "" : " as \(name.harmless)").")
        }

        static func lines(_ list: AllowList) -> String {
            guard !list.entries.isEmpty else { return "No key is trusted.\n" }
            return list.entries.map { "\($0.key)  \($0.key.fingerprint.grouped)  \($0.name.harmless)\n" }.joined()
        }
    }

    /// `ferry invite`: a one-time code for a peer whose key is not known.
    struct InviteCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "invite",
            abstract: "Makes a one-time code that lets another side in, and trusts it from then on.",
            discussion: """
                Give the code to one person, by a way that others do not hear. It is good once, at a ferry receive or ferry gateway of \
                this user that waits for peers: ferry send --code CODE, or ferry receive --connect --code CODE. Then that side's key is \
                trusted, and no code is needed any more; with --remember NAME the other side remembers this one's key too.

                Where the program qrencode is installed, the code is shown as a picture as well.
                """)

        @Argument(help: "What the other side is called here, once it has come.")
        var name: [String] = []

        @Option(help: "Hours after which the code expires.")
        var hours = 24.0

        @Flag(help: "Call off all codes that wait to be used.")
        var clear = false

        func validate() throws {
            guard (0.01...8760).contains(hours) else {
                throw ValidationError("--hours \(hours) is out of range; give 0.01 to 8760.")
            }
            if clear && !name.isEmpty { throw ValidationError("--clear calls off all codes; give no name with it.") }
        }

        func run() async throws {
            let folder = TrustFolder()
            if clear {
                let count = folder.clearInvitations()
                return print(count == 1 ? "1 code is called off." : "\(count) codes are called off.")
            }
            let end = Date(timeIntervalSinceNow: hours * 3600)
            let invitation = try folder.invite(name: name.joined(separator: " "), until: end)
            print(invitation.code)
            note("ferry: Good once, for \(TransferReport.time(hours * 3600)). The other side gives it with --code.")
            CodePicture.show(invitation.code)
        }
    }
#else
    import ArgumentParser

    /// What a build without the trait says of keys.
    private enum Keys {
        static func areMissing(_ command: String) -> ValidationError {
            ValidationError(
                "Keys are not part of this build. Build with the trait Seal: swift run --traits Seal ferry \(command) ..."
            )
        }
    }

    /// `ferry key`: not part of this build.
    struct KeyCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "key",
            abstract: "Shows this side's public key. Not part of this build: it needs the trait Seal.")
        @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
        func run() throws { throw Keys.areMissing("key") }
    }

    /// `ferry trust`: not part of this build.
    struct TrustCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "trust",
            abstract: "Trusts the key of another side. Not part of this build: it needs the trait Seal.")
        @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
        func run() throws { throw Keys.areMissing("trust") }
    }

    /// `ferry invite`: not part of this build.
    struct InviteCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "invite",
            abstract: "Makes a one-time code. Not part of this build: it needs the trait Seal.")
        @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
        func run() throws { throw Keys.areMissing("invite") }
    }
#endif
