import CoreBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// L2CAP channels and their streams.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct ChannelTests {
    private static func publish(_ pair: Pair) async throws -> (PeripheralSide, CBL2CAPPSM) {
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        peripheral.manager.publishL2CAPChannel(withEncryption: false)
        try await peripheral.journal.wait(for: "published")
        let line = try some(peripheral.journal.all.first { $0.hasPrefix("published") })
        return (peripheral, try some(CBL2CAPPSM(line.split(separator: " ")[1])))
    }

    @Test func refusesNumbersThatAreNotPublished() async throws {
        let pair = try Pair()
        let (peripheral, psm) = try await Self.publish(pair)
        #expect((0x80...0xFF).contains(psm))
        let central = CentralSide(on: pair.far)
        let (peer, _) = try await central.connect()
        peer.openL2CAPChannel(psm + 1)
        try await central.journal.wait(for: "channel CBError connectionFailed")
        peripheral.manager.unpublishL2CAPChannel(psm + 1)
        try await peripheral.journal.wait(for: "unpublished \(psm + 1) CBError invalidParameters")
        peripheral.manager.unpublishL2CAPChannel(psm)
        try await peripheral.journal.wait(for: "unpublished \(psm) ok")
        peer.openL2CAPChannel(psm)
        try await central.journal.wait(for: "channel CBError", 2)
        peer.openL2CAPChannel(0)
        try await central.journal.wait(for: "channel CBError", 3)
        #expect(peripheral.journal.count("channel") == 0)
    }

    /// A megabyte each way at once, by blocking reads and writes on threads, through small credits.
    @Test func carriesBytesBothWays() async throws {
        let pair = try Pair {
            $0.l2capCredits = 4
            $0.l2capMTU = 500
        }
        let (peripheral, psm) = try await Self.publish(pair)
        let accepted = Mutex<CBL2CAPChannel?>(nil)
        peripheral.onChannel = { channel in accepted.withLock { $0 = channel } }
        let central = CentralSide(on: pair.far)
        let (peer, _) = try await central.connect()
        peer.openL2CAPChannel(psm)
        try await central.journal.wait(for: "channel ok")
        try await peripheral.journal.wait(for: "channel ok")
        let near = try some(accepted.withLock { $0 })
        let far = try some(central.channel.withLock { $0 })
        #expect(near.psm == psm && far.psm == psm)
        #expect(far.peer === peer)
        #expect(near.peer is CBCentral)

        let count = 1 << 20
        async let one = Self.exchange(near, count, seed: 3, peerSeed: 5)
        async let other = Self.exchange(far, count, seed: 5, peerSeed: 3)
        let results = try await [one, other]
        #expect(results == [count, count], "every byte arrived as it was sent")
    }

    /// Sends and receives so many bytes, each side's a pattern of its own; gives how many were as expected.
    private static func exchange(_ channel: CBL2CAPChannel, _ count: Int, seed: Int, peerSeed: Int) async throws -> Int
    {
        let streams = Streams(channel)
        streams.input.open()
        streams.output.open()
        async let sent: Void = onAThread {
            var next = 0
            while next < count {
                let chunk = (next..<min(next + 3000, count)).map { UInt8(truncatingIfNeeded: $0 &* seed) }
                var done = 0
                while done < chunk.count {
                    let written = chunk[done...].withUnsafeBufferPointer { buffer in
                        buffer.baseAddress.map { streams.output.write($0, maxLength: buffer.count) } ?? 0
                    }
                    guard written > 0 else { return }
                    done += written
                }
                next += chunk.count
            }
        }
        async let right: Int = onAThread {
            var buffer = [UInt8](repeating: 0, count: 1000)
            var next = 0
            while next < count {
                let read = streams.input.read(&buffer, maxLength: buffer.count)
                guard read > 0 else { break }
                for (offset, byte) in buffer[..<read].enumerated()
                where byte != UInt8(truncatingIfNeeded: (next + offset) &* peerSeed) { return next + offset }
                next += read
            }
            return next
        }
        await sent
        return await right
    }

    /// Streams on a run loop of another thread report everything to their delegate, the end too.
    @Test func reportsOnARunLoop() async throws {
        let pair = try Pair()
        let (peripheral, psm) = try await Self.publish(pair)
        let accepted = Mutex<CBL2CAPChannel?>(nil)
        peripheral.onChannel = { channel in accepted.withLock { $0 = channel } }
        let central = CentralSide(on: pair.far)
        let (peer, _) = try await central.connect()
        peer.openL2CAPChannel(psm)
        try await central.journal.wait(for: "channel ok")
        try await peripheral.journal.wait(for: "channel ok")
        let near = Streams(try some(accepted.withLock { $0 }))
        let far = Streams(try some(central.channel.withLock { $0 }))
        let listener = StreamListener()
        let isDone = Atomic(false)
        async let loop: Void = onAThread {
            for stream in [far.input, far.output] as [Stream] {
                stream.delegate = listener
                stream.schedule(in: .current, forMode: .default)
                stream.open()
            }
            while !isDone.load(ordering: .relaxed) {
                _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.02))
            }
        }
        try await listener.journal.wait(for: "in open")
        try await listener.journal.wait(for: "out open")
        try await listener.journal.wait(for: "out space")
        near.output.open()
        near.input.open()
        _ = near.output.write([1, 2, 3], maxLength: 3)
        try await listener.journal.wait(for: "in bytes [1, 2, 3]")
        near.output.close()
        near.input.close()
        try await listener.journal.wait(for: "in end")
        try await listener.journal.wait(for: "out end")
        #expect(far.input.streamStatus == .atEnd)
        #expect(near.input.streamStatus == .closed)
        #expect(far.output.write([1], maxLength: 1) == -1)
        isDone.store(true, ordering: .relaxed)
        await loop
    }

    /// A channel closes when nobody keeps it.
    @Test func closesWithItsObject() async throws {
        let pair = try Pair()
        let (peripheral, psm) = try await Self.publish(pair)
        let central = CentralSide(on: pair.far)
        let (peer, _) = try await central.connect()
        peripheral.onChannel = { _ in }
        peer.openL2CAPChannel(psm)
        try await central.journal.wait(for: "channel ok")
        let far = Streams(try some(central.channel.withLock { $0 }))
        far.input.open()
        let read = await onAThread {
            var byte: UInt8 = 0
            return far.input.read(&byte, maxLength: 1)
        }
        #expect(read == 0, "the other side has let go of it: the end")
    }
}

/// A channel's streams, used by one thread each.
private struct Streams: @unchecked Sendable {
    let channel: CBL2CAPChannel
    let input: InputStream
    let output: OutputStream

    init(_ channel: CBL2CAPChannel) {
        self.channel = channel
        input = channel.inputStream
        output = channel.outputStream
    }
}

/// Runs what blocks on a thread of its own.
private func onAThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread { continuation.resume(returning: body()) }.start()
    }
}

/// Writes down what streams report.
private final class StreamListener: NSObject, StreamDelegate, Sendable {
    let journal = Journal()

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        let name = aStream is InputStream ? "in" : "out"
        switch eventCode {
        case .openCompleted: journal.add("\(name) open")
        case .hasSpaceAvailable: journal.add("\(name) space")
        case .endEncountered: journal.add("\(name) end")
        case .hasBytesAvailable:
            var buffer = [UInt8](repeating: 0, count: 64)
            let count = (aStream as? InputStream)?.read(&buffer, maxLength: buffer.count) ?? -1
            journal.add("\(name) bytes \(Array(buffer.prefix(max(count, 0))))")
        default: journal.add("\(name) \(eventCode)")
        }
    }
}
