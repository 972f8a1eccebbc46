import FoundationEssentials

/// What went wrong with a file, for people.
enum FileProblem {
    static func text(_ error: any Error) -> String {
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
        default: "\(error)"
        }
    }

    private static func text(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, let context): "\(place(context))'\(key.stringValue)' is missing"
        case .typeMismatch(let type, let context): "\(place(context))the value is not a \(type)"
        case .valueNotFound(let type, let context): "\(place(context))there is null in place of a \(type)"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty ? "it is not JSON" : "\(place(context))\(context.debugDescription)"
        @unknown default: "\(error)"
        }
    }

    private static func place(_ context: DecodingError.Context) -> String {
        let path = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
        return path.isEmpty ? "" : "at \(path), "
    }
}
