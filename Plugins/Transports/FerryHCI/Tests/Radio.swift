#if HCI
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import Synchronization
    import Testing

    /// A virtual radio.
    enum RadioKind: Sendable, Hashable, CustomTestStringConvertible {
        /// Bumble's controllers, with ACL packets of so many bytes both ways.
        case bumble(acl: Int)
        /// RootCanal, which has ACL packets of 27 bytes towards it.
        case rootCanal
        /// This package's own controllers, which are stricter: two hosts, 27 bytes towards them.
        case virtualControllers

        static let all: [RadioKind] = [.bumble(acl: 27), .bumble(acl: 251), .rootCanal]
        static let two: [RadioKind] = [.bumble(acl: 251), .rootCanal]
        static let every = here(all)

        /// This package's own controllers, and where others are asked for (scripts/interop hosts) those, too.
        static func here(_ others: [RadioKind]) -> [RadioKind] {
            [.virtualControllers] + (Interop.isAskedFor ? others : [])
        }

        /// The signal strength in dBm that all are heard with, where it is fixed.
        var rssi: Int? { if case .bumble = self { -50 } else { nil } }

        var testDescription: String {
            switch self {
            case .bumble(let acl): "Bumble \(acl)"
            case .rootCanal: "RootCanal"
            case .virtualControllers: "virtual-controllers"
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
                let first = Self.nextPorts()
                let script = try Interop.Script(
                    executable: Interop.rootCanal,
                    zip(["test", "hci", "link", "link_ble"], 0...).flatMap { ["--\($0)_port", "\(first + $1)"] },
                    keepsUntil: "Listening on: \(first + 1) ")
                #expect(await script.hasPrinted("Listening on: \(first + 1) "), "\(script.output)")
                return Radio(
                    script: script, channels: .init(repeating: .tcp(host: "127.0.0.1", port: first + 1), count: count),
                    peers: .init(repeating: "tcp-client:127.0.0.1:\(first + 1)", count: count))
            case .virtualControllers:
                let folder = Interop.folder()
                let paths = (0..<2).map { folder + "\($0)" }
                let script = try Interop.Script(
                    executable: Interop.program("virtual-controllers"),
                    paths.map { "unix:\($0)" } + ["--acl-length", "27"])
                #expect(await script.hasPrinted("Controller 1 serves"), "\(script.output)")
                return Radio(
                    script: script, channels: paths.map { .unix(path: $0) }, peers: paths.map { "unix-client:\($0)" })
            }
        }

        private static let portsGiven = Atomic(Int.random(in: 0..<3000))

        /// The first of four ports that no other test of this process is given soon. The system gives none of these itself.
        private static func nextPorts() -> Int {
            20_000 + 4 * (portsGiven.wrappingAdd(1, ordering: .relaxed).newValue % 3000)
        }

        /// What a host did wrong, as the controllers see it; RootCanal does not say.
        var complaints: [Substring] { script.lines.filter { $0.hasPrefix("!!") } }

        /// Runs a test's body. What the controllers have printed belongs to its failure: why one of them did not answer, say.
        func explaining(_ body: () async throws -> Void) async throws {
            do { try await body() } catch {
                throw Interop.Failure(what: "\(error) The controllers say: \(script.output.suffix(4000))")
            }
        }

        func stop() { script.stop() }
    }
#endif
