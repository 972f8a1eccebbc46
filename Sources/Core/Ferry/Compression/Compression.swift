/// Makes payloads smaller. Both sides of a channel use the same compression with the same settings.
///
/// A compression sees one payload at a time and keeps nothing between them. The channel adds the envelope that says
/// whether it was used and checks sizes and ratio before it asks for decompression.
public protocol Compression: Sendable {
    /// A number for the format, as ``Codec/identifier``; 0 is no compression. Default 255.
    var identifier: UInt8 { get }

    /// A checksum of what both sides must know beforehand, such as a preset dictionary; nil when that is nothing. The channel
    /// states it with each compressed payload, and refuses one that was compressed with another. Default nil.
    var dictionaryChecksum: UInt32? { get }

    /// Appends `plain`, compressed, to `output`, adding at most `budget` bytes.
    ///
    /// - Returns: false when the compressed form would need more than `budget`; `output` is then as it was.
    /// - Throws: an error that keeps it from working at all; never for mere lack of gain.
    func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) throws -> Bool

    /// The plain form of `compressed`, which must have exactly `plainCount` bytes.
    ///
    /// `plainCount` is the peer's claim, already checked against the channel's limits. Never takes more memory than
    /// `plainCount` and a constant.
    ///
    /// - Throws: ``FerryError`` with `corruptCompression` when the stream is damaged, cut short, followed by other
    ///   bytes, or has another plain length than stated.
    func decompress(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8]
}

extension Compression {
    /// 255: a compression without an assigned number.
    public var identifier: UInt8 { 255 }
    /// Nil: both sides need to know nothing beforehand.
    public var dictionaryChecksum: UInt32? { nil }
}
