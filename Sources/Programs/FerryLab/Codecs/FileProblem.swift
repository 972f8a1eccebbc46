import Foundation

/// What went wrong with a file, for people.
package enum FileProblem {
    package static func text(_ error: any Error) -> String {
        switch error {
        case let error as CocoaError: text(error)
        case let error as DecodingError: text(error)
        default: "\(error)"
        }
    }

    private static func text(_ error: CocoaError) -> String {
        switch error.code {
        case .fileReadNoSuchFile: "there is no such file"
        case .fileNoSuchFile: "its folder does not exist"
        case .fileReadNoPermission, .fileWriteNoPermission: "the permission is missing"
        case .fileWriteOutOfSpace: "the disk is full"
        case .fileReadUnknown: "it is no file that can be read"
        case .propertyListReadCorrupt, .fileReadCorruptFile: "it is cut or damaged"
        default:
            (error.underlying as? POSIXError).map { String(cString: strerror($0.code.rawValue)) }
                ?? error.localizedDescription
        }
    }

    private static func text(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context): "\(place(context))'\(key.stringValue)' is missing"
        case .typeMismatch(let type, let context): "\(place(context))the value is not \(name(of: type))"
        case .valueNotFound(let type, let context): "\(place(context))there is null in place of \(name(of: type))"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty ? "it is not JSON" : "\(place(context))\(context.debugDescription)"
        @unknown default: "\(error)"
        }
    }

    /// A type as people call it who write JSON.
    package static func name(of type: any Any.Type) -> String {
        switch type {
        case is any BinaryInteger.Type: "a whole number"
        case is any BinaryFloatingPoint.Type: "a number"
        case is String.Type: "text"
        case is Bool.Type: "true or false"
        case is [String: Any].Type: "an object"
        case is [Any].Type: "a list"
        default: "\(type)".hasPrefix("Array<") ? "a list" : "\(type)".hasPrefix("Dictionary<") ? "an object" : "\(type)"
        }
    }

    private static func place(_ context: DecodingError.Context) -> String {
        let path = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
        return path.isEmpty ? "" : "at \(path), "
    }
}
