#if BlueZ
    import CSystemd
    import Glibc

    /// One D-Bus message. Belongs to the thread of its bus, as sd-bus demands.
    final class BusMessage {
        /// Only for use within this class and ``Bus``'s closures that keep the message alive: Swift lets go of an object
        /// after its last use, which may be before a call that was given its pointer returns.
        private let raw: OpaquePointer

        /// Shares a message of sd-bus's.
        init(_ message: OpaquePointer) { raw = sd_bus_message_ref(message) }
        /// Takes a new message over.
        init(owning message: OpaquePointer) { raw = message }
        deinit { sd_bus_message_unref(raw) }

        private static func text(_ pointer: UnsafePointer<CChar>?) -> String {
            pointer.map { String(cString: $0) } ?? ""
        }

        var path: String { Self.text(sd_bus_message_get_path(raw)) }
        var interface: String { Self.text(sd_bus_message_get_interface(raw)) }
        var member: String { Self.text(sd_bus_message_get_member(raw)) }
        var sender: String { Self.text(sd_bus_message_get_sender(raw)) }
        var isCall: Bool { kind == 1 }
        var isSignal: Bool { kind == 4 }
        private var kind: UInt8 {
            var kind: UInt8 = 0
            return sd_bus_message_get_type(raw, &kind) < 0 ? 0 : kind
        }

        /// The error that the message carries, if it is one.
        var error: BusError? {
            guard sd_bus_message_is_method_error(raw, nil) > 0, let error = sd_bus_message_get_error(raw) else {
                return nil
            }
            return BusError(name: Self.text(error.pointee.name), message: Self.text(error.pointee.message))
        }

        /// Whether the caller waits for an answer.
        var expectsReply: Bool { sd_bus_message_get_expect_reply(raw) > 0 }

        /// Uses the message's pointer, which is valid meanwhile.
        func withPointer(_ body: (OpaquePointer) -> Int32) -> Int32 { withExtendedLifetime(self) { body(raw) } }

        // MARK: Reading

        /// All values of the message's body.
        func read() throws(BusError) -> [BusValue] {
            var values: [BusValue] = []
            while let value = try readValue() { values.append(value) }
            return values
        }

        private func check(_ result: Int32) throws(BusError) {
            if result < 0 { throw BusError("A D-Bus message cannot be read", result) }
        }

        private func basic<Value: BitwiseCopyable>(_ type: CChar, _ initial: Value) throws(BusError) -> Value {
            var value = initial
            try check(sd_bus_message_read_basic(raw, type, &value))
            return value
        }

        private func string(_ type: CChar) throws(BusError) -> String {
            Self.text(try basic(type, nil as UnsafePointer<CChar>?))
        }

        private func readValue() throws(BusError) -> BusValue? {
            var type: CChar = 0
            var contents: UnsafePointer<CChar>?
            let found = sd_bus_message_peek_type(raw, &type, &contents)
            try check(found)
            guard found > 0 else { return nil }
            let inner = Self.text(contents)
            switch UInt8(bitPattern: type) {
            case UInt8(ascii: "b"): return .bool(try basic(type, 0 as Int32) != 0)
            case UInt8(ascii: "y"): return .byte(try basic(type, 0))
            case UInt8(ascii: "n"): return .int16(try basic(type, 0))
            case UInt8(ascii: "q"): return .uint16(try basic(type, 0))
            case UInt8(ascii: "i"): return .int32(try basic(type, 0))
            case UInt8(ascii: "u"): return .uint32(try basic(type, 0))
            case UInt8(ascii: "x"): return .int64(try basic(type, 0))
            case UInt8(ascii: "t"): return .uint64(try basic(type, 0))
            case UInt8(ascii: "d"): return .double(try basic(type, 0))
            case UInt8(ascii: "s"): return .string(try string(type))
            case UInt8(ascii: "o"): return .path(try string(type))
            case UInt8(ascii: "g"): return .signature(try string(type))
            case UInt8(ascii: "h"):
                // The message closes its own descriptor.
                let copy = fcntl(try basic(type, -1 as Int32), F_DUPFD_CLOEXEC, 3)
                guard copy >= 0 else { throw BusError("A file descriptor cannot be received", -errno) }
                return .descriptor(FileDescriptor(owning: copy))
            case UInt8(ascii: "a"): return try readArray(of: inner)
            case UInt8(ascii: "r"): return .structure(try readMembers(type, inner))
            case UInt8(ascii: "v"):
                guard let value = try readMembers(type, inner).first else {
                    throw BusError("An empty variant", -EBADMSG)
                }
                return .variant(value)
            default: throw BusError("A D-Bus message has a type that is not known here", -EBADMSG)
            }
        }

        private func readArray(of element: String) throws(BusError) -> BusValue {
            if element == "y" {
                var start: UnsafeRawPointer?
                var count = 0
                try check(sd_bus_message_read_array(raw, CChar(UInt8(ascii: "y")), &start, &count))
                return .bytes(Array(UnsafeRawBufferPointer(start: start, count: count)))
            }
            guard element.first == "{" else {
                return .array(element, try readMembers(CChar(UInt8(ascii: "a")), element))
            }
            var entries: [BusEntry] = []
            let pair = String(element.dropFirst().dropLast())
            try check(sd_bus_message_enter_container(raw, CChar(UInt8(ascii: "a")), element))
            while sd_bus_message_at_end(raw, 0) == 0 {
                let members = try readMembers(CChar(UInt8(ascii: "e")), pair)
                guard members.count == 2 else { throw BusError("A dictionary entry without a value", -EBADMSG) }
                entries.append(BusEntry(key: members[0], value: members[1]))
            }
            try check(sd_bus_message_exit_container(raw))
            return .dictionary(String(pair.prefix(1)), String(pair.dropFirst()), entries)
        }

        private func readMembers(_ type: CChar, _ contents: String) throws(BusError) -> [BusValue] {
            try check(sd_bus_message_enter_container(raw, type, contents))
            let values = try read()
            try check(sd_bus_message_exit_container(raw))
            return values
        }

        // MARK: Writing

        func append(_ values: [BusValue]) throws(BusError) {
            for value in values { try append(value) }
        }

        private func checkWrite(_ result: Int32) throws(BusError) {
            if result < 0 { throw BusError("A D-Bus message cannot be written", result) }
        }

        private func append<Value: BitwiseCopyable>(_ type: Unicode.Scalar, basic value: Value) throws(BusError) {
            var value = value
            try checkWrite(sd_bus_message_append_basic(raw, CChar(UInt8(ascii: type)), &value))
        }

        private func append(_ type: Unicode.Scalar, text: String) throws(BusError) {
            try checkWrite(text.withCString { sd_bus_message_append_basic(raw, CChar(UInt8(ascii: type)), $0) })
        }

        private func append(_ type: Unicode.Scalar, _ contents: String, _ values: [BusValue]) throws(BusError) {
            try checkWrite(sd_bus_message_open_container(raw, CChar(UInt8(ascii: type)), contents))
            try append(values)
            try checkWrite(sd_bus_message_close_container(raw))
        }

        private func append(_ value: BusValue) throws(BusError) {
            switch value {
            case .bool(let value): try append("b", basic: value ? 1 : 0 as Int32)
            case .byte(let value): try append("y", basic: value)
            case .int16(let value): try append("n", basic: value)
            case .uint16(let value): try append("q", basic: value)
            case .int32(let value): try append("i", basic: value)
            case .uint32(let value): try append("u", basic: value)
            case .int64(let value): try append("x", basic: value)
            case .uint64(let value): try append("t", basic: value)
            case .double(let value): try append("d", basic: value)
            case .string(let value): try append("s", text: value)
            case .path(let value): try append("o", text: value)
            case .signature(let value): try append("g", text: value)
            case .descriptor(let value): try append("h", basic: value.rawValue)
            case .bytes(let value):
                try checkWrite(
                    value.withUnsafeBytes {
                        sd_bus_message_append_array(raw, CChar(UInt8(ascii: "y")), $0.baseAddress, $0.count)
                    })
            case .array(let element, let values): try append("a", element, values)
            case .dictionary(let key, let value, let entries):
                try checkWrite(sd_bus_message_open_container(raw, CChar(UInt8(ascii: "a")), "{\(key)\(value)}"))
                for entry in entries { try append("e", key + value, [entry.key, entry.value]) }
                try checkWrite(sd_bus_message_close_container(raw))
            case .structure(let members): try append("r", members.map(\.signature).joined(), members)
            case .variant(let inner): try append("v", inner.signature, [inner])
            }
        }
    }
#endif
