#if NATS
    import CNATS
    import FoundationEssentials
    import Glibc

    /// What a stream answers to a message (JetStream's PubAck).
    struct PublishAnswer: Decodable {
        private struct Refusal: Decodable {
            let err_code: UInt32?
            let description: String?
        }

        private let seq: UInt64?
        private let duplicate: Bool?
        private let error: Refusal?

        typealias Result = Swift.Result<NATSPublisher.Receipt, NATSFailure>

        /// Reads a message of the library's.
        static func read(_ message: OpaquePointer) -> Result {
            // The server says that no stream listens.
            guard !natsMsg_IsNoResponders(message) else { return .failure(NATSFailure(NATS_NO_RESPONDERS)) }
            return read(
                UnsafeRawBufferPointer(start: natsMsg_GetData(message), count: Int(natsMsg_GetDataLength(message))))
        }

        /// Reads an answer's bytes.
        static func read(_ bytes: UnsafeRawBufferPointer) -> Result {
            if let sequence = plainSequence(bytes) {
                return .success(NATSPublisher.Receipt(sequence: sequence, isDuplicate: false))
            }
            let read = try? JSONDecoder().decode(PublishAnswer.self, from: Data(bytes))
            if let refusal = read?.error {
                return .failure(NATSFailure(refusal.err_code ?? 0, refusal.description ?? ""))
            }
            guard let sequence = read?.seq, sequence > 0 else {
                return .failure(NATSFailure(0, "the answer is none of JetStream's; something else may answer there"))
            }
            return .success(NATSPublisher.Receipt(sequence: sequence, isDuplicate: read?.duplicate ?? false))
        }

        /// The place in `{"stream":"ferry", "seq":7}`, as nearly all answers are; nil for any other form.
        private static func plainSequence(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
            var rest = bytes[...]
            guard skip("{\"stream\":\"", in: &rest), let end = rest.firstIndex(of: 0x22) else { return nil }
            rest = rest[end...]
            guard skip("\", \"seq\":", in: &rest) || skip("\",\"seq\":", in: &rest) else { return nil }
            var sequence: UInt64 = 0
            // 19 digits are less than 2^64.
            guard rest.last == 0x7D, (2...20).contains(rest.count) else { return nil }
            for byte in rest.dropLast() {
                guard (0x30...0x39).contains(byte) else { return nil }
                sequence = sequence * 10 + UInt64(byte - 0x30)
            }
            return sequence > 0 ? sequence : nil
        }

        private static func skip(_ text: StaticString, in rest: inout Slice<UnsafeRawBufferPointer>) -> Bool {
            let count = text.utf8CodeUnitCount
            guard rest.count >= count, let start = UnsafeRawBufferPointer(rebasing: rest).baseAddress,
                memcmp(start, text.utf8Start, count) == 0
            else { return false }
            rest = rest.dropFirst(count)
            return true
        }
    }
#endif
