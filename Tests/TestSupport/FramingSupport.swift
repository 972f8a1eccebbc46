package import Ferry

extension FramingSession {
    /// Sends one chunk, if there is one, and keeps a copy of it.
    package mutating func sendOne(
        atMost size: Int, to chunks: inout [[UInt8]], accepting: Bool = true
    ) throws(FerryError) -> Transmission {
        try transmit(atMost: size, at: .zero) { (chunk) throws(FerryError) -> Bool in
            if accepting { chunks.append(chunk.withUnsafeBytes { [UInt8]($0) }) }
            return accepting
        }
    }

    /// All messages delivered since the last call; other events are dropped.
    package mutating func receivedMessages() -> [[UInt8]] {
        var messages: [[UInt8]] = []
        while let event = nextEvent() {
            if case .received(let message) = event { messages.append(message) }
        }
        return messages
    }

    /// All events since the last call, in words.
    package mutating func eventDescriptions() -> [String] {
        var descriptions: [String] = []
        while let event = nextEvent() {
            switch event {
            case .received(let message): descriptions.append("received \(message.count)")
            case .progress(let id, let count): descriptions.append("progress \(id.rawValue) \(count)")
            case .sent(let id): descriptions.append("sent \(id.rawValue)")
            case .failed(let id, let error): descriptions.append("failed \(id.rawValue) \(error.code)")
            case .receiveFailed(let error): descriptions.append("receiveFailed \(error.code)")
            }
        }
        return descriptions
    }

    /// Receives bytes given in hexadecimal.
    package mutating func receive(hex chunk: String, at now: Timestamp = .zero) throws(FerryError) {
        try receive(bytes(chunk).span.bytes, at: now)
    }
}

/// The bytes of pairs of hexadecimal digits, with spaces between or none.
package func bytes(_ hex: some StringProtocol) -> [UInt8] {
    let digits = hex.filter { $0 != " " }.map { digit -> UInt8 in
        guard let value = digit.hexDigitValue else { fatalError("not hexadecimal: \(digit) in \(hex)") }
        return UInt8(value)
    }
    guard digits.count.isMultiple(of: 2) else { fatalError("an odd number of digits: \(hex)") }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// Bytes as hexadecimal digits without spaces, as other programs write them.
package func digits(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// Bytes as pairs of hexadecimal digits parted by spaces.
package func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined(separator: " ")
}
