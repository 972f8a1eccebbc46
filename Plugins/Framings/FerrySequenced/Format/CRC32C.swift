import CFerryChecksum

/// CRC-32C (Castagnoli), as in iSCSI (RFC 3720, 12.1 and B.4): it finds every burst of up to 32 wrong bits.
///
/// It guards against accidents, not against people: who can change a message can change its checksum too.
struct CRC32C: Sendable, Hashable {
    /// The checksum of the bytes added until now.
    private(set) var value: UInt32 = 0

    /// So many bytes are added at once where there is a choice: enough for the fast way to pay, few enough to be in the
    /// cache still.
    static let step = 4096

    /// Of no bytes.
    init() {}

    /// Adds bytes.
    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        value = ferry_crc32c(value, base, bytes.count)
    }

    /// Adds bytes.
    mutating func add(_ bytes: RawSpan) {
        bytes.withUnsafeBytes { add($0) }
    }

    /// The same without the processor's instruction, so that a test can compare the two.
    static func byTable(_ bytes: [UInt8]) -> UInt32 {
        bytes.withUnsafeBytes { ferry_crc32c_by_table(0, $0.baseAddress, $0.count) }
    }

    /// The same as firmware has it, so that a test can compare the two.
    static func byNibbles(_ bytes: [UInt8]) -> UInt32 {
        bytes.withUnsafeBytes { ferry_crc32c_by_nibbles(0, $0.baseAddress, $0.count) }
    }
}
