import Foundation

/// Card files on disk.
enum CardFile {
    /// The largest card file that is read, in bytes. Five lines of text need far less.
    static let maximumSize = 1 << 20

    /// Reads a card.
    ///
    /// - Throws: ``CardError`` that names the file, what is wrong with it and in which line, and what to do.
    static func load(_ path: String) throws(CardError) -> Card {
        let bytes = try contents(of: path)
        do {
            return try CardFormat.read(bytes, fileExtension: URL(fileURLWithPath: path).pathExtension)
        } catch {
            throw CardError(
                "\(path): \(error). A card file is JSON, a property list or a vCard with the fields \(Card.Field.list)."
            )
        }
    }

    /// Writes a card in the format that the extension stands for: a whole new file takes the old one's place, or the
    /// old one stays as it was.
    ///
    /// - Throws: ``CardError`` that names the file and what keeps it from being written.
    static func save(_ card: Card, to path: String) throws(CardError) {
        let format = try format(forSaving: path)
        try checkReplaceable(path)
        let content: [UInt8]
        do { content = try format.write(card) } catch { throw CardError("\(path): \(error).") }
        do {
            try Data(content).write(to: URL(fileURLWithPath: path), options: .atomic)
        } catch {
            throw CardError("\(path) cannot be written: \(reason(error)). Give --save another place.")
        }
    }

    /// The format that a card would be saved in.
    ///
    /// - Throws: ``CardError`` when the extension stands for none.
    static func format(forSaving path: String) throws(CardError) -> CardFormat {
        let fileExtension = URL(fileURLWithPath: path).pathExtension
        guard let format = CardFormat(fileExtension: fileExtension) else {
            let met = fileExtension.isEmpty ? "has no extension" : "has the extension .\(fileExtension)"
            throw CardError("\(path) \(met). A card is saved as .json, .plist or .vcf.")
        }
        return format
    }

    /// Finds out before an exchange what would keep its card from being saved afterwards.
    static func checkDestination(_ path: String) throws(CardError) {
        _ = try format(forSaving: path)
        let url = URL(fileURLWithPath: path)
        let folder = url.deletingLastPathComponent().path
        var isFolder = ObjCBool(false)
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw CardError("\(path) cannot be written: there is no folder \(folder). Make it, or give another place.")
        }
        if FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder), isFolder.boolValue {
            throw CardError("\(path) cannot be written: it is a folder. Give a file name in it.")
        }
        guard FileManager.default.isWritableFile(atPath: folder) else {
            throw CardError("\(path) cannot be written: the folder \(folder) is not writable. Give another place.")
        }
        try checkReplaceable(path)
    }

    /// A new file could take the place of one that may not be written to, which the user has not asked for.
    private static func checkReplaceable(_ path: String) throws(CardError) {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: resolved(path)) else { return }
        guard attributes[.type] as? FileAttributeType == .typeRegular else {
            throw CardError("\(path) cannot be written: it is not a regular file. Give another place.")
        }
        let mode = (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0o600
        guard mode & 0o222 != 0, FileManager.default.isWritableFile(atPath: path) else {
            throw CardError("\(path) cannot be written: it is there, and may not be changed. Give another place.")
        }
    }

    private static func contents(of path: String) throws(CardError) -> [UInt8] {
        do {
            // A pipe might never end and a device never stop.
            let kind = try FileManager.default.attributesOfItem(atPath: resolved(path))[.type] as? FileAttributeType
            guard kind == .typeRegular else {
                let met = kind == .typeDirectory ? "a folder" : "not a regular file"
                throw CardError("it is \(met)")
            }
            let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            defer { try? handle.close() }
            let data = try handle.read(upToCount: maximumSize + 1) ?? Data()
            guard data.count <= maximumSize else {
                throw CardError("it is larger than \(maximumSize) bytes, the most that a card file may have")
            }
            return Array(data)
        } catch {
            throw CardError("\(path) cannot be read: \(reason(error)). Give --card another file.")
        }
    }

    private static func resolved(_ path: String) -> String {
        URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    }

    /// The system's own words for why a file could not be used, such as "No such file or directory".
    private static func reason(_ error: any Error) -> String {
        if let error = error as? CardError { return error.description }
        let outer = error as NSError
        let error = (outer.userInfo[NSUnderlyingErrorKey] as? any Error).map { $0 as NSError } ?? outer
        if error.domain == NSPOSIXErrorDomain { return String(cString: strerror(Int32(error.code))) }
        switch CocoaError.Code(rawValue: error.code) {
        case .fileNoSuchFile, .fileReadNoSuchFile: return "No such file or directory"
        case .fileReadNoPermission, .fileWriteNoPermission: return "Permission denied"
        case .fileWriteOutOfSpace: return "No space left on device"
        case .fileWriteVolumeReadOnly: return "Read-only file system"
        case .fileWriteInvalidFileName, .fileReadInvalidFileName: return "the name is not possible"
        default: return "the system gives no reason (error \(error.code))"
        }
    }
}
