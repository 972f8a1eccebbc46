import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import TestSupport
import Testing

/// Who is at the other end of a GATT link, and that a link to one peer is never one to another.
@Suite(.tags(.channel, .bluetooth), .timeLimit(.minutes(5))) struct PeerIdentityTests {
    private static let layout = GATTConfiguration(
        service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))

    private static func makeRadio(_ time: VirtualTime) throws -> LoopbackRadio {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(1)
        return try LoopbackRadio(time: time, configuration: configuration)
    }

    private static func transport(
        _ adapter: LoopbackAdapter, encrypted: Bool = false, _ time: VirtualTime
    ) -> GATTTransport {
        var layout = layout
        layout.encryptionRequired = encrypted
        return GATTTransport(adapter: adapter, configuration: layout, time: time)
    }

    private static func first(of listener: LinkListener) async throws -> any Link {
        for await link in listener.links { return link }
        throw FerryError(.peerNotFound, "The listener ended.")
    }

    private static func expect(
        _ code: FerryError.Code, _ text: String, _ body: () async throws -> any Link,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let error = await #expect(throws: FerryError.self, sourceLocation: sourceLocation) { try await body().close() }
        #expect(error?.code == code, sourceLocation: sourceLocation)
        #expect(error?.message.contains(text) == true, "\(error?.message ?? "")", sourceLocation: sourceLocation)
    }

    @Test func bothEndsSayWhoseTheLinkIs() throws {
        let time = VirtualTime()
        let radio = try Self.makeRadio(time)
        try time.run {
            let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
            let listener = try await Self.transport(server, time).listen()
            let near = try await Self.transport(client, time).connect(timeout: .unreached)
            let far = try await Self.first(of: listener)
            #expect(near.peer == server.identity && near.peer.certainty == .address)
            #expect(far.peer == client.identity)
            #expect(server.identity != client.identity)
            #expect(PeerIdentity("\(near.peer)") == near.peer)
            near.close()
            let channel = try MessageChannel(over: far, codec: BytesCodec(), time: time)
            for try await _ in channel.messages.prefix(1) {}
            #expect(near.peer == server.identity && far.peer == client.identity, "an ended link knows whose it was")
        }
    }

    @Test func aPairedPeerIsKnownByItsBond() throws {
        let time = VirtualTime()
        let radio = try Self.makeRadio(time)
        try time.run {
            let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
            let listener = try await Self.transport(server, encrypted: true, time).listen()
            let near = try await Self.transport(client, encrypted: true, time).connect(timeout: .unreached)
            let far = try await Self.first(of: listener)
            #expect(near.peer.certainty == .bond && far.peer.certainty == .bond)
            #expect(near.peer.name == server.identity.name)
            let stored = try #require(PeerIdentity(near.peer.description))
            near.close()
            // Known as surely again, though nothing in this layout asks for encryption.
            listener.close()
            let plain = try await Self.transport(server, time).listen()
            let again = try await Self.transport(client, time).connect(to: stored, timeout: .unreached)
            #expect(again.peer == stored)
            again.close()
            // Without the bond anybody could claim the address; pairing anew does not make it the peer that was meant.
            radio.removeBond(between: server, and: client)
            await Self.expect(.peerNotFound, "pair again") {
                try await Self.transport(client, time).connect(to: stored, timeout: .unreached)
            }
            plain.close()
            let renewed = try await Self.transport(server, encrypted: true, time).listen()
            await Self.expect(.peerNotFound, "pair again") {
                try await Self.transport(client, encrypted: true, time).connect(to: stored, timeout: .unreached)
            }
            #expect(!radio.isBonded(server, client))
            renewed.close()
        }
    }

    /// The peer is off and a stranger offers the same service.
    @Test func aStrangerIsNotThePeer() throws {
        let time = VirtualTime()
        let radio = try Self.makeRadio(time)
        let (server, stranger, client) = (radio.makeAdapter(), radio.makeAdapter(), radio.makeAdapter())
        try time.run {
            let wrong = try await Self.transport(stranger, time).listen()
            await Self.expect(.timedOut, "did not answer") {
                try await Self.transport(client, time).connect(to: server.identity, timeout: .milliseconds(100))
            }
            let right = try await Self.transport(server, time).listen()
            for _ in 0..<5 {
                let near = try await Self.transport(client, time).connect(to: server.identity, timeout: .unreached)
                #expect(near.peer == server.identity)
                _ = try await Self.first(of: right)
                near.close()
            }
            wrong.close()
            for await _ in wrong.links { Issue.record("the stranger was given a link") }
        }
    }

    @Test func whoCannotBeKnownAgainIsNotSought() throws {
        let time = VirtualTime()
        let radio = try Self.makeRadio(time)
        try time.run {
            let transport = Self.transport(radio.makeAdapter(), time)
            for identity in [PeerIdentity("5B:00:00:00:00:01/random", certainty: .connection)] {
                await Self.expect(.peerNotFound, "one connection only") {
                    try await transport.connect(to: identity, timeout: .unreached)
                }
            }
            // Another transport's identity is looked for, and not found.
            await Self.expect(.timedOut, "was not heard") {
                try await transport.connect(
                    to: PeerIdentity("10.0.0.1:80", certainty: .address), timeout: .milliseconds(50))
            }
        }
    }

    @Test(arguments: [
        (0xC011_2233_4455 as UInt64, true, PeerIdentity.Certainty.address, "C0:11:22:33:44:55/random"),
        (0x8011_2233_4455, true, .connection, "80:11:22:33:44:55/random"),
        (0x4011_2233_4455, true, .connection, "40:11:22:33:44:55/random"),
        (0x0011_2233_4455, true, .connection, "00:11:22:33:44:55/random"),
        (0x0011_2233_4455, false, .address, "00:11:22:33:44:55/public"),
    ])
    func addressesAreAsSureAsTheirKind(
        _ value: UInt64, _ isRandom: Bool, _ certainty: PeerIdentity.Certainty, _ name: String
    ) throws {
        let identity = PeerIdentity(bluetoothAddress: value, isRandom: isRandom, isProven: false)
        #expect(identity.name == name)
        #expect(identity.certainty == certainty)
        let address = try #require(identity.bluetoothAddress)
        #expect(address.value == value && address.isRandom == isRandom)
        #expect(PeerIdentity(bluetoothAddress: value, isRandom: isRandom, isProven: true).certainty == .bond)
    }

    @Test(arguments: [
        "", "C0:11:22:33:44:55", "C0:11:22:33:44:5/random", "C0:11:22:33:44:5G/public", "a/b", "::::: /x",
    ])
    func whatIsNoAddressIsNone(_ name: String) {
        #expect(PeerIdentity(name, certainty: .address).bluetoothAddress == nil)
    }
}
