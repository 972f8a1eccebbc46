#if BlueZ
    import Glibc

    /// A D-Bus value (D-Bus Specification, "Type System"), with the types that BlueZ uses.
    indirect enum BusValue: Sendable, Equatable {
        case bool(Bool)
        case byte(UInt8)
        case int16(Int16)
        case uint16(UInt16)
        case int32(Int32)
        case uint32(UInt32)
        case int64(Int64)
        case uint64(UInt64)
        case double(Double)
        case string(String)
        case path(String)
        case signature(String)
        case descriptor(FileDescriptor)
        /// An array of bytes.
        case bytes([UInt8])
        /// Any other array, with its elements' signature.
        case array(String, [BusValue])
        /// A dictionary, with the signatures of its keys and values.
        case dictionary(String, String, [BusEntry])
        case structure([BusValue])
        case variant(BusValue)

        /// A dictionary from names to values of any type, as BlueZ takes options and gives properties.
        static func options(_ options: [String: BusValue]) -> BusValue {
            .dictionary("s", "v", options.map { BusEntry(key: .string($0), value: .variant($1)) })
        }

        static func paths(_ paths: [String]) -> BusValue { .array("o", paths.map { .path($0) }) }
        static func strings(_ strings: [String]) -> BusValue { .array("s", strings.map { .string($0) }) }

        /// The value's D-Bus signature.
        var signature: String {
            switch self {
            case .bool: "b"
            case .byte: "y"
            case .int16: "n"
            case .uint16: "q"
            case .int32: "i"
            case .uint32: "u"
            case .int64: "x"
            case .uint64: "t"
            case .double: "d"
            case .string: "s"
            case .path: "o"
            case .signature: "g"
            case .descriptor: "h"
            case .bytes: "ay"
            case .array(let element, _): "a\(element)"
            case .dictionary(let key, let value, _): "a{\(key)\(value)}"
            case .structure(let members): "(\(members.map(\.signature).joined()))"
            case .variant: "v"
            }
        }
    }

    /// One entry of a D-Bus dictionary.
    struct BusEntry: Sendable, Equatable {
        let key: BusValue
        let value: BusValue
    }

    // What a value is, if it is that; variants are looked into.
    extension BusValue {
        var plain: BusValue { if case .variant(let inner) = self { inner.plain } else { self } }
        var bool: Bool? { if case .bool(let value) = plain { value } else { nil } }
        var bytes: [UInt8]? { if case .bytes(let value) = plain { value } else { nil } }
        var text: String? {
            switch plain {
            case .string(let value), .path(let value), .signature(let value): value
            default: nil
            }
        }
        var number: Int? {
            switch plain {
            case .byte(let value): Int(value)
            case .int16(let value): Int(value)
            case .uint16(let value): Int(value)
            case .int32(let value): Int(value)
            case .uint32(let value): Int(value)
            case .int64(let value): Int(value)
            case .uint64(let value): Int(exactly: value)
            default: nil
            }
        }
        var elements: [BusValue] { if case .array(_, let values) = plain { values } else { [] } }
        var texts: [String] { elements.compactMap(\.text) }
        var entries: [BusEntry] { if case .dictionary(_, _, let entries) = plain { entries } else { [] } }
        /// A dictionary with names for keys.
        var properties: [String: BusValue] {
            var properties: [String: BusValue] = [:]
            for entry in entries { if let name = entry.key.text { properties[name] = entry.value.plain } }
            return properties
        }
        var descriptor: FileDescriptor? { if case .descriptor(let value) = plain { value } else { nil } }
    }

    /// A file descriptor that is closed when its last reference is released.
    final class FileDescriptor: Sendable, Equatable {
        let rawValue: Int32
        /// Takes the descriptor over.
        init(owning descriptor: Int32) { rawValue = descriptor }
        deinit { close(rawValue) }
        static func == (left: FileDescriptor, right: FileDescriptor) -> Bool { left.rawValue == right.rawValue }
    }

    /// What went wrong on the bus: a D-Bus error's name and text, or an operating system's.
    struct BusError: Error, CustomStringConvertible {
        let name: String
        let message: String

        init(name: String, message: String) {
            self.name = name
            self.message = message
        }

        /// - Parameter result: a negative `errno`, as sd-bus returns it.
        init(_ what: String, _ result: Int32) {
            name = "errno.\(-result)"
            message = "\(what): \(String(cString: strerror(-result)))"
        }

        /// The bus went away, or was closed by this side.
        static let closed = BusError(
            name: "org.freedesktop.DBus.Error.Disconnected", message: "The connection to the bus was lost.")

        /// The system's numbers are in the message as words.
        var description: String {
            if message.isEmpty { return name }
            return name.hasPrefix("errno.") ? message : "\(message) (\(name))"
        }
    }
#endif
