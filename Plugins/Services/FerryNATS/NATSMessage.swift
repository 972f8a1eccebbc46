#if NATS
    import CNATS
    import Ferry
    import Glibc

    /// A message of NATS: a subject, headers, and bytes.
    public struct NATSMessage: Sendable, Hashable {
        /// One header.
        public struct Header: Sendable, Hashable {
            /// Its name, as it is written, for names differ by case: visible ASCII characters, and no colon.
            public let name: String
            /// Its value: at least one character, no space at its begin and end, and no line breaks.
            public let value: String

            /// Whether it arrives as it was sent. libnats skips white space on both sides of a value, line breaks as well: it reads
            /// the header that follows an empty value as that value.
            package let isPlain: Bool

            /// A header.
            public init(_ name: String, _ value: String) {
                self.name = name
                self.value = value
                isPlain =
                    !name.isEmpty && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x3A }
                    && !value.isEmpty && value.utf8.first != 0x20 && value.utf8.last != 0x20
                    && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
            }
        }

        /// Words with dots between them.
        public let subject: String
        /// Headers, at most one of a name.
        public let headers: [Header]
        /// What it carries.
        public let bytes: [UInt8]

        /// Makes a message.
        public init(_ subject: String, headers: [Header] = [], bytes: [UInt8]) {
            self.subject = subject
            self.headers = headers
            self.bytes = bytes
        }

        /// A header's value.
        public subscript(name: String) -> String? { headers.first { $0.name == name }?.value }

        /// Takes a library's message, which stays the caller's.
        init(_ message: OpaquePointer) {
            subject = natsMsg_GetSubject(message).map { String(cString: $0) } ?? ""
            let count = Int(natsMsg_GetDataLength(message))
            let data = natsMsg_GetData(message)
            bytes =
                count > 0 && data != nil
                ? Array(UnsafeRawBufferPointer(start: UnsafeRawPointer(data), count: count)) : []
            var names: UnsafeMutablePointer<UnsafePointer<CChar>?>?
            var nameCount: Int32 = 0
            var found: [Header] = []
            if natsMsgHeader_Keys(message, &names, &nameCount) == NATS_OK, let names {
                for index in 0..<Int(nameCount) {
                    var value: UnsafePointer<CChar>?
                    guard let name = names[index], natsMsgHeader_Get(message, name, &value) == NATS_OK, let value
                    else { continue }
                    found.append(Header(String(cString: name), String(cString: value)))
                }
                // The names belong to the message, the list to us.
                free(names)
            }
            headers = found
        }

        /// A library's message, which the caller destroys.
        ///
        /// - Parameter reply: where its answer is to go.
        func make(replyingTo reply: UnsafePointer<CChar>? = nil) throws(FerryError) -> OpaquePointer {
            guard bytes.count <= Int(Int32.max) else {
                throw FerryError(.messageTooLarge, "A message has \(bytes.count) bytes; NATS takes less than 2^31.")
            }
            guard Self.isSubject(subject) else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(subject.debugDescription) is no subject: words of visible characters, with dots between them, and no wildcards."
                )
            }
            var message: OpaquePointer?
            let status = bytes.withUnsafeBytes { bytes in
                natsMsg_Create(
                    &message, subject, reply, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count)
                )
            }
            guard status == NATS_OK, let message else { throw NATSFailure(status).error("A message cannot be made") }
            for header in headers {
                guard header.isPlain, natsMsgHeader_Set(message, header.name, header.value) == NATS_OK else {
                    natsMsg_Destroy(message)
                    throw FerryError(
                        .invalidConfiguration,
                        "\(header.name.debugDescription): \(header.value.debugDescription) is no header of a message to \(subject). "
                            + "A name has visible ASCII characters and no colon; a value is not empty, does not begin or end with a "
                            + "space, and has no control characters. Leave a header out that has nothing to say.")
                }
            }
            return message
        }

        /// Whether something can be published to it.
        static func isSubject(_ text: String) -> Bool {
            var isInWord = false
            for byte in text.utf8 {
                switch byte {
                case 0x2E where isInWord: isInWord = false
                case ...0x20, 0x2A, 0x2E, 0x3E, 0x7F: return false
                default: isInWord = true
                }
            }
            return isInWord
        }
    }
#endif
