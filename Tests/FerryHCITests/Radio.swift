#if HCI
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import Testing

    /// A virtual radio that nobody here wrote.
    enum RadioKind: Sendable, Hashable, CustomTestStringConvertible {
        /// Bumble's controllers, with ACL packets of so many bytes both ways.
        case bumble(acl: Int)
        /// RootCanal, which has ACL packets of 27 bytes towards it.
        case rootCanal

        static let all: [RadioKind] = [.bumble(acl: 27), .bumble(acl: 251), .rootCanal]
        static let two: [RadioKind] = [.bumble(acl: 251), .rootCanal]

        var testDescription: String {
            switch self {
            case .bumble(let acl): "Bumble \(acl)"
            case .rootCanal: "RootCanal"
            }
        }
    }

    /// Controllers on one virtual radio, and how to reach them.
    struct Radio: Sendable {
        let script: Interop.Script
        /// For Ferry.
        let channels: [HCIChannel]
        /// For Bumble's host.
        let peers: [String]

        static func start(_ kind: RadioKind = .bumble(acl: 251), _ count: Int = 2, _ options: [String] = [])
            async throws -> Radio
        {
            switch kind {
            case .bumble(let acl):
                let (script, paths) = try await Interop.controllers(
                    count, ["--acl-len", "\(acl)", "--rx-acl", "\(acl)"] + options)
                return Radio(
                    script: script, channels: paths.map { .unix(path: $0) }, peers: paths.map { "unix-client:\($0)" })
            case .rootCanal:
                // Each connection to the one port is a controller of its own.
                let first = Int.random(in: 10_000..<15_000) * 4
                let script = try Interop.Script(
                    executable: Interop.rootCanal,
                    zip(["test", "hci", "link", "link_ble"], 0...).flatMap { ["--\($0)_port", "\(first + $1)"] },
                    keepsUntil: "Listening on: \(first + 1) ")
                #expect(await script.hasPrinted("Listening on: \(first + 1) "), "\(script.output)")
                return Radio(
                    script: script, channels: .init(repeating: .tcp(host: "127.0.0.1", port: first + 1), count: count),
                    peers: .init(repeating: "tcp-client:127.0.0.1:\(first + 1)", count: count))
            }
        }

        /// What a host did wrong, as Bumble's controllers see it.
        var complaints: [Substring] { script.lines.filter { $0.hasPrefix("!!") } }

        func stop() { script.stop() }
    }
#endif
