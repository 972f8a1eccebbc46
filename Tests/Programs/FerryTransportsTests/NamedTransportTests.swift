import Ferry
import FerryBluetooth
import FerryTesting
import Synchronization
import TestSupport
import Testing

@testable import FerryTransports

/// Transports by the names that people type.
@Suite(.tags(.program)) struct NamedTransportTests {
    private func error(_ text: String) throws -> FerryError {
        try #require(throws: FerryError.self) { try NamedTransport.parse(text, program: "ferry") }
    }

    @Test func theVirtualRadioIsAlwaysThere() throws {
        let named = try NamedTransport.parse("loopback", program: "ferry")
        #expect(named.description == "loopback" && named.reachesItself && !named.reachesOtherProcesses)
        #expect(NamedTransport.forms().first == "loopback")
        #expect(NamedTransport.forms { $0.name != "loopback" }.allSatisfy { $0 != "loopback" })
    }

    @Test(arguments: ["", "loopbackx", "hcix:tcp:a:1", "bluezz", "\u{1B}[2J", ":"])
    func whatIsUnknownIsNamedBesideWhatIsKnown(_ text: String) throws {
        let error = try error(text)
        #expect(error.code == .invalidConfiguration)
        #expect(error.message.contains("There is no transport \(text.debugDescription). Use one of: loopback"))
        #expect(!error.message.contains("\u{1B}"))
    }

    @Test func theVirtualRadioHasNoAddress() throws {
        #expect(try error("loopback:1").message.contains("use loopback alone"))
    }

    @Test(arguments: [("hci:tcp:x", "HCI", "hci:tcp:HOST:PORT"), ("bluez:eth0", "BlueZ", "bluez:hci1")])
    func anAddressIsCheckedOrTheTraitIsNamed(_ text: String, _ trait: String, _ accepted: String) throws {
        let error = try error(text)
        let kind = try #require(TransportKind.all.first { text.hasPrefix($0.name) })
        if kind.isAvailable {
            #expect(error.message.contains(accepted))
        } else {
            #expect(error.code == .transportUnavailable)
            #expect(error.message.contains("ild with the trait \(trait): swift run --traits \(trait) ferry ..."))
        }
    }

    /// All that one opening makes hear one another.
    @Test(.timeLimit(.minutes(5))) func rolesOfOneOpeningMeet() async throws {
        let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
        let make = try NamedTransport.loopback.open(layout, RadioOptions())
        let listener = try await make("server").listen()
        let link = try await make("client").connect(timeout: .unreached)
        var links = listener.links.makeAsyncIterator()
        let accepted = try #require(await links.next())
        accepted.close()
        link.close()
    }

    /// What cannot be opened today may be tomorrow; what is open is not opened twice.
    @Test func aTransportIsMadeOnceItCanBe() async throws {
        let attempts = Atomic(0)
        let transport = DeferredTransport { () async throws(FerryError) in
            guard attempts.add(1, ordering: .relaxed).newValue > 1 else {
                throw FerryError(.transportUnavailable, "not yet")
            }
            return Closed()
        }
        #expect(attempts.load(ordering: .relaxed) == 0)
        await #expect(throws: FerryError.self) { _ = try await transport.listen() }
        for _ in 0..<2 { try await transport.listen().close() }
        await #expect(throws: FerryError.self) { _ = try await transport.connect(timeout: .seconds(1)) }
        #expect(attempts.load(ordering: .relaxed) == 2)
    }

    private struct Closed: Transport {
        func listen() async throws(FerryError) -> LinkListener { LinkListener {} }
        func connect(timeout: Duration) async throws(FerryError) -> any Link {
            throw FerryError(.peerNotFound, "nobody")
        }
        func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
            throw FerryError(.peerNotFound, "nobody")
        }
    }
}
