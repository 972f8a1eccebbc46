import Ferry
import FerryBluetooth
import Foundation
import TestSupport
import Testing

@testable import CoreBluetooth

/// The streams of an L2CAP channel over a channel that does what the test says.
@Suite(.tags(.coreBluetooth, .l2cap), .timeLimit(.minutes(5))) struct ChannelPipeTests {
    private struct Ends: @unchecked Sendable {
        let link = ScriptedChannel()
        let channel: CBL2CAPChannel
        let input: InputStream
        let output: OutputStream

        init() throws {
            channel = CBL2CAPChannel(link, peer: CBPeer(identifier: UUID(ScriptedAdapter.peer)))
            input = channel.inputStream
            output = channel.outputStream
            input.open()
            output.open()
        }

        var receiver: any LinkReceiver {
            get throws { try some(link.receiver.current) }
        }

        func receive(_ bytes: [UInt8]) throws { try receiver.linkDidReceive(bytes.span.bytes) }

        func read(_ count: Int) -> [UInt8] {
            var buffer = [UInt8](repeating: 0, count: count)
            let read = input.read(&buffer, maxLength: count)
            return Array(buffer.prefix(max(0, read)))
        }

        func write(_ bytes: [UInt8]) -> Int { output.write(bytes, maxLength: bytes.count) }
    }

    @Test func whatIsNotReadPausesTheChannelUntilItIs() throws {
        let ends = try Ends()
        let chunk = (0..<1024).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for _ in 0..<63 { try ends.receive(chunk) }
        #expect(ends.link.journal.all == [])
        for _ in 0..<37 { try ends.receive(chunk) }
        #expect(ends.link.journal.all == ["receiving false"])
        var read: [UInt8] = []
        // A quarter of 64 KiB may be left.
        while read.count < (100 << 10) - (16 << 10) - 512 { read += ends.read(512) }
        #expect(ends.link.journal.all == ["receiving false"])
        read += ends.read(512)
        #expect(ends.link.journal.all == ["receiving false", "receiving true"])
        while read.count < 100 << 10 { read += ends.read(3_000) }
        #expect(read == (0..<100).flatMap { _ in chunk })
        #expect(!ends.input.hasBytesAvailable)
        #expect(ends.link.journal.all == ["receiving false", "receiving true"])
        // And the same once more.
        for _ in 0..<64 { try ends.receive(chunk) }
        #expect(ends.link.journal.all.count == 3)
    }

    @Test func theChannelClosesWithItsSecondStream() throws {
        for closesInputFirst in [true, false] {
            let ends = try Ends()
            let (first, second): (Stream, Stream) =
                closesInputFirst ? (ends.input, ends.output) : (ends.output, ends.input)
            first.close()
            first.close()
            #expect(ends.link.journal.all == [])
            if closesInputFirst {
                #expect(ends.write([1, 2]) == 2)
            } else {
                try ends.receive([1, 2])
                #expect(ends.read(5) == [1, 2])
            }
            second.close()
            #expect(ends.link.journal.all.last == "close")
            #expect(ends.link.journal.count("close") == 1)
        }
    }

    @Test func theEndComesAfterTheLastByte() throws {
        let ends = try Ends()
        try ends.receive([1, 2, 3, 4])
        try ends.receiver.linkDidClose(FerryError(.closed, "closed"))
        #expect(ends.input.hasBytesAvailable)
        #expect(ends.read(3) == [1, 2, 3])
        #expect(ends.read(3) == [4])
        #expect(!ends.input.hasBytesAvailable)
        var byte: UInt8 = 0
        #expect(ends.input.read(&byte, maxLength: 1) == 0)
        #expect(ends.input.streamError == nil)
        #expect(ends.write([1]) == -1)
        #expect(!ends.output.hasSpaceAvailable)
    }

    @Test func theEndIsNotThereBeforeTheLastByteIsRead() {
        let pipe = ChannelPipe(ScriptedChannel())
        let bytes: [UInt8] = [1, 2]
        pipe.linkDidReceive(bytes.span.bytes)
        #expect(!pipe.hasEnded)
        pipe.linkDidClose(FerryError(.closed, "closed"))
        #expect(!pipe.hasEnded)
        #expect(!pipe.isWritable)
        var byte: UInt8 = 0
        for value in bytes {
            #expect(!pipe.hasEnded)
            #expect(pipe.read(&byte, 1) { true } == 1)
            #expect(byte == value)
        }
        #expect(pipe.hasEnded)
        #expect(!pipe.isReadable)
    }

    @Test func anEndWithTroubleIsAnError() throws {
        for (code, isTrouble) in [(FerryError.Code.closed, false), (.disconnected, false), (.malformedStream, true)] {
            let ends = try Ends()
            try ends.receive([1])
            try ends.receiver.linkDidClose(FerryError(code, "end"))
            // What came before is not spoilt by it: it can be read first.
            var byte: UInt8 = 0
            if !isTrouble {
                #expect(ends.input.read(&byte, maxLength: 1) == 1)
            } else {
                _ = ends.input.read(&byte, maxLength: 1)
            }
            #expect(byte == 1)
            #expect(ends.input.read(&byte, maxLength: 1) == (isTrouble ? -1 : 0))
            #expect((ends.input.streamError != nil) == isTrouble)
            #expect((ends.output.streamError != nil) == isTrouble)
        }
    }

    @Test func whatTheLinkRefusesGoesFirstWhenItIsReady() throws {
        let ends = try Ends()
        ends.link.space.current = 1
        #expect(ends.write([UInt8](repeating: 1, count: 250)) == 100)
        #expect(ends.output.hasSpaceAvailable)
        // Taken here, and waiting for the link.
        #expect(ends.write([UInt8](repeating: 2, count: 30)) == 30)
        #expect(!ends.output.hasSpaceAvailable)
        ends.link.space.current = 0
        try ends.receiver.linkIsReady()
        #expect(!ends.output.hasSpaceAvailable)
        ends.link.space.current = .max
        for _ in 0..<3 { try ends.receiver.linkIsReady() }
        #expect(ends.output.hasSpaceAvailable)
        #expect(ends.write([3]) == 1)
        #expect(ends.link.journal.all == ["sent 100", "sent 30", "sent 1"])
        #expect(ends.write([]) == 0)
    }

    @Test func aReadWaitsForBytesOrTheEnd() async throws {
        for isEnd in [false, true] {
            let ends = try Ends()
            let reading = Task.detached { ends.read(10) }
            // Whatever comes first, the waiting or the bytes.
            if isEnd { try ends.receiver.linkDidClose(FerryError(.closed, "closed")) } else { try ends.receive([7]) }
            #expect(await reading.value == (isEnd ? [] : [7]))
        }
    }

    @Test func aWriteWaitsForTheLink() async throws {
        for isEnd in [false, true] {
            let ends = try Ends()
            ends.link.space.current = 0
            #expect(ends.write([1]) == 1)
            let writing = Task.detached { ends.write([2]) }
            ends.link.space.current = .max
            if isEnd {
                try ends.receiver.linkDidClose(FerryError(.closed, "closed"))
            } else {
                try ends.receiver.linkIsReady()
            }
            #expect(await writing.value == (isEnd ? -1 : 1))
        }
    }

    @Test func nothingIsReadOrWrittenBeforeOpeningOrAfterClosing() throws {
        let link = ScriptedChannel()
        let channel = CBL2CAPChannel(link, peer: CBPeer(identifier: UUID(ScriptedAdapter.peer)))
        let (input, output) = (try some(channel.inputStream), try some(channel.outputStream))
        var byte: UInt8 = 0
        #expect(input.read(&byte, maxLength: 1) == -1)
        #expect(output.write([1], maxLength: 1) == -1)
        for stream in [input, output] as [Stream] {
            #expect(stream.streamStatus == .notOpen)
            stream.open()
            #expect(stream.streamStatus == .open)
            stream.close()
            #expect(stream.streamStatus == .closed)
            stream.open()
            #expect(stream.streamStatus == .closed)
        }
        #expect(input.read(&byte, maxLength: 1) == -1)
        #expect(output.write([1], maxLength: 1) == -1)
        #expect(link.journal.all == ["close"])
    }
}
