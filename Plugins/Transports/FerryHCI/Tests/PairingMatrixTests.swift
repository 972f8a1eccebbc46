#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryHCI

    /// Every two capabilities, both roles, Secure Connections and legacy pairing, with and without the requirement of a number:
    /// Bumble's host and this one do what the table says (Core Specification 5.4, Vol 3, Part H, 2.3.5.1, Table 2.8).
    @Suite(.tags(.adapter, .pairing), .serialized, .timeLimit(.minutes(5)))
    struct PairingMatrixTests {
        /// What the responder (rows) and the initiator (columns) do, in the order display only, display yes no, keyboard only,
        /// neither, keyboard display. J is Just Works, C comparison, "i" and "r" who enters what the other shows, "b" both enter.
        private static let legacyTable = ["JJiJi", "JJiJi", "rrbJr", "JJJJJ", "rriJr"].map(Array.init)
        private static let secureTable = ["JJiJi", "JCiJC", "rrbJr", "JJJJJ", "rCiJC"].map(Array.init)

        /// One of the ten ways in which Bumble pairs with a side of this package.
        private struct Way {
            let own: IOCapability
            let peer: IOCapability
            let isSecure: Bool
            let isCentral: Bool
            let requiresNumber: Bool

            private var method: Character {
                let (initiator, responder) = isCentral ? (own, peer) : (peer, own)
                let table = isSecure ? PairingMatrixTests.secureTable : PairingMatrixTests.legacyTable
                return table[Int(responder.rawValue)][Int(initiator.rawValue)]
            }

            var isRefused: Bool { requiresNumber && method == "J" }

            /// What the person at this side sees; nil for nothing.
            var question: String? {
                switch method {
                case "C": "compare"
                case "b": "passkey"
                case "i": isCentral ? "passkey" : "show"
                case "r": isCentral ? "show" : "passkey"
                default: nil
                }
            }

            /// Whether people choose a number and enter it at both sides.
            var isEnteredAtBoth: Bool { method == "b" }

            var name: String { "\(peer.rawValue):\(isSecure ? 1 : 0)" }
        }

        /// The next pairing begins: the person at this side reads the other's screen too, and types at both.
        private func begin(_ way: Way, _ number: Int, _ person: Person, _ script: Interop.Script) {
            person.journal.clear()
            person.decide {
                $0.show = { script.say("\($0)") }
                $0.compare = { await script.number(after: "compares \(number) ") == $0 }
                $0.passkey = {
                    guard way.isEnteredAtBoth else { return await script.number(after: "shows \(number) ") }
                    // The peer asks as late as when this side's number is there.
                    script.say("123456")
                    return 123_456
                }
            }
        }

        /// All with FERRY_MATRIX in the environment, which takes two minutes; otherwise what can do most, and has to.
        private static let isWhole = ProcessInfo.processInfo.environment["FERRY_MATRIX"] != nil
        static let capabilities = isWhole ? IOCapability.allCases : [.keyboardDisplay]
        static let requirements = isWhole ? [false, true] : [true]

        /// Those that fail come last: whoever fails has to wait.
        private static func ways(_ own: IOCapability, isCentral: Bool, requiresNumber: Bool) -> [Way] {
            let all = [true, false].flatMap { isSecure in
                IOCapability.allCases.map {
                    Way(
                        own: own, peer: $0, isSecure: isSecure, isCentral: isCentral, requiresNumber: requiresNumber)
                }
            }
            return all.filter { !$0.isRefused } + all.filter(\.isRefused)
        }

        private func configure(
            _ own: IOCapability, _ requiresNumber: Bool, _ person: Person
        ) -> (inout HCIConfiguration) -> Void {
            { configuration in
                configuration.pairing?.capability = own
                configuration.pairing?.agent = person
                configuration.pairing?.requiresAuthentication = requiresNumber
            }
        }

        private func check(_ way: Way, _ security: LinkSecurity?, _ person: Person, _ output: String) {
            let comment = Comment(rawValue: "\(way): \(output)")
            #expect(security?.isEncrypted == !way.isRefused, comment)
            let questions = person.questions.filter { $0 != "allow" }
            #expect(questions == (way.isRefused ? [] : way.question.map { [$0] } ?? []), comment)
            guard !way.isRefused else { return }
            #expect(security?.isAuthenticated == (way.question != nil), comment)
            #expect(security?.isSecureConnections == way.isSecure, comment)
        }

        @Test(.withOthers, arguments: capabilities, requirements)
        func bumblesCentralPairsAsTheTableSays(own: IOCapability, requiresNumber: Bool) async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let person = Person()
            let (adapter, server) = try await Server.open(radio.channels[0], configure(own, requiresNumber, person))
            let ways = Self.ways(own, isCentral: false, requiresNumber: requiresNumber)
            let central = try Interop.Script(
                "peer.py", ["central", radio.peers[1]] + ways.flatMap { ["try=\($0.name)", "reconnect"] })
            for (number, way) in ways.enumerated() {
                begin(way, number, person, central)
                central.say("go")
                #expect(await central.hasPrinted("C: tried", times: number + 1), "\(way): \(central.output)")
                let peer = try #require(adapter.connectedPeer)
                // The peer has its keys first.
                if !way.isRefused { try await until("the keys of \(way)") { !adapter.bondedPeers.isEmpty } }
                check(way, adapter.security(of: peer), person, central.output)
                if !way.isRefused { try adapter.forget(peer) }
                central.say("on")
            }
            #expect(await central.exitStatus() == 0, "\(central.output)")
            server.close()
            adapter.close()
        }

        @Test(.withOthers, arguments: capabilities, requirements)
        func bumblesPeripheralPairsAsTheTableSays(own: IOCapability, requiresNumber: Bool) async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let person = Person()
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0], "--ways"])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let client = try await Client.open(radio.channels[1], configure(own, requiresNumber, person))
            for (number, way) in Self.ways(own, isCentral: true, requiresNumber: requiresNumber).enumerated() {
                begin(way, number, person, peripheral)
                peripheral.say(way.name)
                #expect(await peripheral.hasPrinted("P: ready", times: number + 1), "\(peripheral.output)")
                let connection = try await client.connect()
                try? await client.adapter.pair(with: connection.peripheral)
                check(way, client.adapter.security(of: connection.peripheral), person, peripheral.output)
                if !way.isRefused { try client.adapter.forget(connection.peripheral) }
                client.journal.clear()
                connection.disconnect()
                try await client.journal.wait(for: "disconnected")
                #expect(await peripheral.hasPrinted("P: disconnected", times: number + 1), "\(peripheral.output)")
            }
            client.close()
            peripheral.stop()
        }
    }

    extension HCIAdapter {
        /// The one peer that is connected.
        fileprivate var connectedPeer: PeerID? {
            engine.state.withLock { state in state.links.values.first?.peer }
        }
    }
#endif
