/// What crosses a ``RequestChannel``: one byte that says what it is, a number, and the rest.
///
/// ```
/// request:   01, number as a varint, request payload
/// response:  02, number as a varint, response payload
/// failure:   03, number as a varint, UTF-8 text
/// cancel:    04, number as a varint
/// ```
///
/// The varint is unsigned LEB128 in its shortest form. Each side numbers its own requests.
struct RequestMessage: Sendable, Hashable {
    enum Kind: UInt8 { case request = 1, response, failure, cancel }

    var kind: Kind
    var number: UInt64
    var payload: [UInt8] = []
}

struct RequestMessageCodec: Codec {
    /// The number of the requests' codec, for framings that state it.
    let identifier: UInt8
    var isTrivial: Bool { true }

    func encode(_ message: RequestMessage) -> [UInt8] {
        var bytes = [message.kind.rawValue]
        bytes.reserveCapacity(11 + message.payload.count)
        Varint.append(message.number, to: &bytes)
        bytes += message.payload
        return bytes
    }

    func decode(_ payload: [UInt8]) throws(FerryError) -> RequestMessage {
        guard let first = payload.first, let kind = RequestMessage.Kind(rawValue: first) else {
            let what = payload.first.map { "begins with \($0)" } ?? "is empty"
            throw FerryError(
                .malformedStream,
                "A message of \(payload.count) bytes on a request channel \(what); 1 to 4 are known. Use RequestChannel on "
                    + "both sides.")
        }
        var decoder = Varint.Decoder()
        for index in payload.indices.dropFirst() {
            let number: UInt64?
            do { number = try decoder.push(payload[index]) } catch { break }
            if let number {
                return RequestMessage(kind: kind, number: number, payload: Array(payload[(index + 1)...]))
            }
        }
        throw FerryError(
            .malformedStream, "The number of a message of \(payload.count) bytes on a request channel is no varint.")
    }
}
