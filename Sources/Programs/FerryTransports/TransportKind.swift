package import Ferry

/// A way to carry chunks, by the word that people type after `--transport`.
///
/// This is the one place to add another: a file with its entry, which names the trait that this build lacks, and its
/// name in ``all``. Every command with `--transport` has it then.
package struct TransportKind: Sendable {
    /// The word up to the first colon of the typed name: `loopback`, `unix`, `hci`.
    package let name: String
    /// Whether it makes Bluetooth adapters, and not other links.
    package let makesAdapters: Bool
    /// What can be typed; none where this build lacks it.
    package let forms: [String]
    /// What to do where this build lacks it, with the program that is to be run: `Build with the trait HCI: ...`.
    let advice: @Sendable (_ program: String) -> String
    /// Reads the typed name, which begins with `name`. Opens nothing.
    let parse: @Sendable (String) throws(FerryError) -> NamedTransport

    /// Every one that there is, in this build or another.
    package static let all = [loopback, unix, tcp, hci, bluez]

    /// One that this build has.
    static func available(
        _ name: String, makesAdapters: Bool = true, forms: [String],
        parse: @escaping @Sendable (String) throws(FerryError) -> NamedTransport
    ) -> TransportKind {
        TransportKind(name: name, makesAdapters: makesAdapters, forms: forms, advice: { _ in "" }, parse: parse)
    }

    /// One that needs a trait which this build was made without.
    static func missing(_ name: String, trait: String, install package: String? = nil) -> TransportKind {
        let advice: @Sendable (String) -> String = { program in
            (package.map { "Install \($0) and build" } ?? "Build")
                + " with the trait \(trait): swift run --traits \(trait) \(program) ..."
        }
        return TransportKind(name: name, makesAdapters: true, forms: [], advice: advice) { (_) throws(FerryError) in
            throw FerryError(.transportUnavailable, advice("..."))
        }
    }

    /// Whether this build has it.
    package var isAvailable: Bool { !forms.isEmpty }
}

extension NamedTransport {
    /// What can be typed in this build, for help and messages.
    ///
    /// - Parameter isWanted: which of them the program can use.
    package static func forms(where isWanted: (TransportKind) -> Bool = { _ in true }) -> [String] {
        TransportKind.all.filter(isWanted).flatMap(\.forms)
    }

    /// The transport that was typed. Nothing is opened.
    ///
    /// - Parameters:
    ///   - program: the program's name, for what to run where a trait is missing.
    ///   - forms: what can be typed, for messages, where that is not everything.
    /// - Throws: `invalidConfiguration` with what can be typed; `transportUnavailable` with the trait that is missing.
    package static func parse(
        _ text: String, program: String, forms: [String] = forms()
    ) throws(FerryError) -> NamedTransport {
        let word = text.prefix { $0 != ":" }
        guard let kind = TransportKind.all.first(where: { $0.name == word }) else {
            throw FerryError(
                .invalidConfiguration,
                "There is no transport \(text.debugDescription). Use one of: \(forms.joined(separator: ", ")).")
        }
        guard kind.isAvailable else {
            throw FerryError(
                .transportUnavailable,
                "The transport \(kind.name) is not part of this build. \(kind.advice(program)); available now: "
                    + "\(forms.joined(separator: ", ")).")
        }
        return try kind.parse(text)
    }
}
