import Ferry
import FerrySMP
import FerryUART
import FuzzDriver

/// The formats of devices, and the server of SMP, given arbitrary bytes, under libFuzzer.
///
/// The first byte of an input chooses: SMP's framing, its server, lines, SLIP, COBS, or one of these as its remainder by 5. The second is
/// the size of chunks less 1. The rest is what arrives. Nothing may trap; what is delivered has at most as many bytes as came, and what
/// UART's framings deliver they can send, so that it arrives again.
enum Devices {
    private static let limits: Limits = {
        var limits = Limits()
        limits.maximumMessageSize = 4096
        return limits
    }()

    static func run(_ input: UnsafeRawBufferPointer) {
        guard input.count > 2 else { return }
        let bytes = Array(input.dropFirst(2))
        let size = Int(input[1]) + 1
        switch (chosenFormat ?? input[0]) % 5 {
        case 0: _ = receive(SMPFraming(), bytes, size)
        case 1:
            var server = SMPServer()
            for message in receive(SMPFraming(), bytes, size) {
                if let answer = server.answer(message) {
                    precondition(
                        SMPHeader(answer).map { Int($0.payloadCount) + 8 } == answer.count, "an answer is no message")
                }
            }
        case 2: again(UARTFraming(.lines(.lineFeed)), bytes, size)
        case 3: again(UARTFraming(.slip), bytes, size)
        default: again(UARTFraming(.cobs), bytes, size)
        }
    }

    private static func receive(_ framing: some Framing, _ bytes: [UInt8], _ size: Int) -> [[UInt8]] {
        var session = framing.makeSession(limits: limits)
        var messages: [[UInt8]] = []
        var rest = bytes[...]
        do throws(FerryError) {
            while !rest.isEmpty {
                var failure: FerryError?
                rest.prefix(size).withUnsafeBytes { chunk in
                    do throws(FerryError) { try session.receive(chunk.bytes, at: .zero) } catch { failure = error }
                }
                rest = rest.dropFirst(size)
                while let event = session.nextEvent() {
                    if case .received(let message) = event { messages.append(message) }
                }
                if let failure { throw failure }
            }
            try session.linkDidClose(at: .zero)
        } catch {
            // The session is of no use any more; letting go of it must work.
        }
        precondition(messages.reduce(0) { $0 + $1.count } <= bytes.count, "more was delivered than came")
        precondition(messages.allSatisfy { $0.count <= limits.maximumMessageSize }, "a message is above the limit")
        return messages
    }

    private static func again(_ framing: UARTFraming, _ bytes: [UInt8], _ size: Int) {
        let messages = receive(framing, bytes, size)
        var session = framing.makeSession(limits: limits)
        var line: [UInt8] = []
        var expected: [[UInt8]] = []
        for (number, message) in messages.enumerated() {
            // A line that ends with a carriage return came with two.
            guard (try? session.enqueue(message, as: MessageID(rawValue: UInt64(number)), at: .zero)) != nil else {
                continue
            }
            expected.append(message)
        }
        var outcome = Transmission.accepted
        while outcome == .accepted {
            outcome =
                (try? session.transmit(atMost: size, at: .zero) { (chunk) throws(FerryError) in
                    line += chunk.withUnsafeBytes { Array($0) }
                    return true
                }) ?? .idle
        }
        precondition(receive(framing, line, size) == expected, "what was delivered does not arrive again")
    }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Devices.run(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

@main enum Main {
    static func main() {
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
