public import Foundation

/// The file in which a manager's state is kept between runs of a program.
final class RestorationFile: Sendable {
    let url: URL
    /// A writer holds it from reading the state until the file is written, so that the last state stays.
    private let turn = NSLock()

    /// - Parameter role: `central` or `peripheral`, since both kinds of manager may use one identifier.
    init(identifier: String, role: String) {
        let name = identifier.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "state"
        // A file name has at most 255 bytes.
        url = CBAdapters.restorationDirectory.appendingPathComponent("\(name.prefix(200)).\(role).plist")
    }

    func read<Snapshot: Decodable>(_ type: Snapshot.Type) -> Snapshot? {
        guard let data = try? Data(contentsOf: url) else { return nil }
        do { return try PropertyListDecoder().decode(type, from: data) } catch {
            Misuse.report("\(url.path) cannot be restored from and is ignored: \(error)")
            return nil
        }
    }

    func write(_ snapshot: () -> some Encodable) {
        turn.withLock { write(now: snapshot()) }
    }

    private func write(now snapshot: some Encodable) {
        do {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try PropertyListEncoder().encode(snapshot).write(to: url, options: .atomic)
        } catch {
            Misuse.report("the state cannot be kept in \(url.path): \(error)")
        }
    }
}

extension CBAdapters {
    private static let directory = Guarded<URL?>(nil)

    /// Where the files for state restoration are kept: `$XDG_STATE_HOME/corebluetooth`, or
    /// `~/.local/state/corebluetooth`, or on Apple's systems `corebluetooth` in Application Support, unless the program chooses
    /// another place before it makes a manager.
    public static var restorationDirectory: URL {
        get {
            if let chosen = directory.current { return chosen }
            #if canImport(Darwin)
                let base = URL.applicationSupportDirectory
            #else
                let environment = ProcessInfo.processInfo.environment
                let base =
                    environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0) : nil }
                    ?? FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent(".local/state")
            #endif
            return base.appendingPathComponent("corebluetooth")
        }
        set { directory.current = newValue }
    }
}

/// What an earlier run has left, on its way to the program: `Restored` are the objects that stand for it.
enum Restoring<Snapshot, Restored> {
    case nothing
    /// The delegate has to be told of it.
    case found(Snapshot)
    /// The program has it; it goes on when the adapter is on.
    case handed(Snapshot, [Restored])

    /// Whether the file must stay as it is.
    var isUnderWay: Bool { if case .nothing = self { false } else { true } }
    /// What the delegate has to be told of.
    var found: Snapshot? { if case .found(let snapshot) = self { snapshot } else { nil } }
}
