import Ferry

/// Messages to measure with: text of the kind that apps send, compressible to about a third.
package enum SampleText {
    private static let words = [
        "name", "value", "sensor", "temperature", "humidity", "battery", "level", "address", "street", "city",
        "contact",
        "phone", "mail", "company", "title", "note", "time", "status", "active", "true", "false", "left", "right",
    ]

    /// `count` bytes of text, the same for the same seed.
    package static func bytes(count: Int, seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        var text: [UInt8] = []
        text.reserveCapacity(count + 32)
        while text.count < count {
            let word = words[Int(generator.next() % UInt64(words.count))]
            text += "\"\(word)\":\(generator.next() % 10_000),".utf8
        }
        return Array(text.prefix(count))
    }
}
