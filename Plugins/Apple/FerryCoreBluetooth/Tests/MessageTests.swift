import CoreBluetooth
import CoreBluetoothRig
import Ferry
import FerryBluetooth
import FerryCoreBluetooth
import FerryLoopback
import FerrySequenced
import FerryTesting
import TestSupport
import Testing

/// Messages between Core Bluetooth and the other adapters, both ways.
@Suite(.tags(.adapter, .coreBluetooth), .timeLimit(.minutes(10))) struct MessageTests {
    enum Sides: CaseIterable { case centralIsCoreBluetooth, peripheralIsCoreBluetooth, both }

    /// What Apple's framework cannot advertise is refused, and not left out in silence.
    @Test func whatCoreBluetoothCannotAdvertiseIsRefused() async throws {
        final class Deaf: PeripheralRoleEvents, Sendable {
            func peripheralAdapterDidChange(_ state: AdapterState) {}
        }
        let role = overCoreBluetooth(LoopbackRadio().makeAdapter()).openPeripheral(Deaf())
        for beyond in [
            Advertisement(manufacturerData: [0xFF, 0xFF]),
            Advertisement(serviceData: [BluetoothUUID(0xFE01 as UInt16): [1]]),
            Advertisement(isConnectable: false), Advertisement(interval: .seconds(1) ... .seconds(2)),
            Advertisement(isExtended: true),
        ] {
            let error = await #expect(throws: BluetoothError.self) { try await role.startAdvertising(beyond) }
            #expect(error?.code == .notSupported)
        }
        role.close()
    }

    private static func layout() throws -> GATTConfiguration {
        try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
    }

    /// Messages of many lengths, a few of 100 KiB among them.
    private static func messages(_ count: Int, seed: UInt64) -> [[UInt8]] {
        var random = SplitMix64(seed: seed)
        return (0..<count).map { number in
            let length =
                switch number % 50 {
                case 49: 102_400
                case 10...19: Int(random.next() % 2000)
                default: Int(random.next() % 200)
                }
            return (0..<length).map { UInt8(truncatingIfNeeded: $0 &+ number) }
        }
    }

    private func exchange(
        _ near: any BluetoothAdapter, _ far: any BluetoothAdapter, _ framing: some Framing, count: Int, seed: UInt64
    ) async throws {
        let listener = try await GATTTransport(adapter: near, configuration: try Self.layout()).listen()
        let link = try await GATTTransport(adapter: far, configuration: try Self.layout()).connect(
            timeout: .unreached)
        let one = try MessageChannel(over: link, codec: BytesCodec(), framing: framing)
        var links = listener.links.makeAsyncIterator()
        let accepted = try #require(await links.next())
        let other = try MessageChannel(over: accepted, codec: BytesCodec(), framing: framing)
        let there = Self.messages(count, seed: seed)
        let back = Self.messages(count, seed: seed &+ 1)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { for message in there { try await one.send(message) } }
            group.addTask { for message in back { try await other.send(message) } }
            group.addTask { try await Self.expect(there, from: other) }
            group.addTask { try await Self.expect(back, from: one) }
            try await group.waitForAll()
        }
        one.close()
        other.close()
        listener.close()
    }

    private static func expect(_ messages: [[UInt8]], from channel: MessageChannel<[UInt8], [UInt8]>) async throws {
        var number = 0
        for try await message in channel.messages {
            try #require(message == messages[number], "message \(number)")
            number += 1
            if number == messages.count { return }
        }
        Issue.record("the channel ended after \(number) of \(messages.count)")
    }

    private static func radio() throws -> LoopbackRadio {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(10)
        return try LoopbackRadio(configuration: configuration)
    }

    private static func adapters(_ sides: Sides, _ quirks: CBQuirks = []) throws -> (
        near: any BluetoothAdapter, far: any BluetoothAdapter
    ) {
        let radio = try radio()
        let (near, far) = (radio.makeAdapter(), radio.makeAdapter())
        return (
            sides == .centralIsCoreBluetooth ? near : overCoreBluetooth(near, quirks),
            sides == .peripheralIsCoreBluetooth ? far : overCoreBluetooth(far, quirks)
        )
    }

    @Test(arguments: Sides.allCases) func lengthPrefix(_ sides: Sides) async throws {
        let (near, far) = try Self.adapters(sides)
        try await exchange(near, far, LengthPrefixFraming(), count: 200, seed: 1)
    }

    @Test(arguments: Sides.allCases) func endOfMessage(_ sides: Sides) async throws {
        let (near, far) = try Self.adapters(sides)
        try await exchange(near, far, EndOfMessageFraming(), count: 100, seed: 2)
    }

    @Test(arguments: Sides.allCases) func sequenced(_ sides: Sides) async throws {
        let (near, far) = try Self.adapters(sides)
        try await exchange(near, far, SequencedFraming(), count: 100, seed: 3)
    }

    /// Under each quirk, and all of them: slower, and whole.
    @Test(arguments: everyQuirk) func underQuirks(_ quirks: CBQuirks) async throws {
        let (near, far) = try Self.adapters(.both, quirks)
        try await exchange(near, far, LengthPrefixFraming(), count: 200, seed: UInt64(quirks.rawValue))
    }
}
