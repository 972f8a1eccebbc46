package import ArgumentParser
import Foundation

/// What every command takes that meets a peer: who is trusted, and how that is known.
package struct TrustOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The one-time code that the other side shows. In the environment as FERRY_CODE other users do not see it.",
            valueName: "code"))
    package var code: String?

    @Option(
        help: ArgumentHelp(
            "Meet this peer and no other: its public key, or its name in the list of trusted keys.",
            valueName: "key|name"))
    package var peer: String?

    @Option(
        help: ArgumentHelp(
            "When the other side comes by a one-time code, trust its key from now on, under this name.",
            valueName: "name"))
    package var remember: String?

    @Flag(help: "Seal what crosses also where nothing demands it: on this machine, and over Bluetooth.")
    package var sealed = false

    @Flag(help: "Seal nothing, though others on the network can read and change what crosses.")
    package var plain = false

    @Flag(
        inversion: .prefixedNo,
        help: "Show a one-time code when this side listens over a network. (default: yes, without --keep)")
    package var showCode: Bool?

    @Option(
        help: ArgumentHelp(
            "The file of this side's secret key. (default: ~/.config/ferry/key, made when it is not there)",
            valueName: "file"))
    package var identity: String?

    @Option(
        help: ArgumentHelp("The file of the trusted keys. (default: ~/.config/ferry/trusted)", valueName: "file"))
    package var trusted: String?

    package init() {}

    package func validate() throws {
        guard plain else { return }
        for (option, isThere) in [
            ("--code", code != nil), ("--peer", peer != nil), ("--remember", remember != nil), ("--sealed", sealed),
        ] where isThere {
            throw ValidationError("\(option) needs what crosses to be sealed, and --plain seals nothing. Choose one.")
        }
    }

    /// The same for ``ProtectedTransport``.
    package func request(program: String) -> TrustRequest {
        var request = TrustRequest()
        request.code = code
        request.codeOfEnvironment = ProcessInfo.processInfo.environment["FERRY_CODE"]
        request.peer = peer
        request.remember = remember
        request.sealing = plain ? .never : sealed ? .always : .whereNeeded
        request.identity = identity
        request.trusted = trusted
        request.program = program
        request.showsCode = showCode ?? true
        return request
    }
}
