public import Ferry

extension FerryError.Code {
    /// The server answered a request with its own error; the message names it.
    public static let smpRefused = FerryError.Code("smp.refused")
    /// The server asks for the same bytes again and again.
    public static let smpNoProgress = FerryError.Code("smp.noProgress")
    /// The server's answer lacks what the command promises, or says what cannot be.
    public static let smpAnswer = FerryError.Code("smp.answer")
}

/// An error as a server writes it, in either version.
///
/// Version 1, and errors of SMP itself in version 2: `{"rc": code}`. Errors of a group in version 2: `{"err": {"group": group,
/// "rc": code}}`. A code of 0, and no code, is success.
public struct SMPRefusal: Sendable, Hashable {
    /// The group whose code it is; nil for a code of SMP itself.
    public var group: SMPGroup?
    /// The code; never 0.
    public var code: Int

    /// Makes a refusal.
    public init(group: SMPGroup? = nil, code: Int) {
        self.group = group
        self.code = code
    }

    /// The code's name in Zephyr; nil for one without.
    public var name: String? {
        switch group {
        case nil: Self.common[code]
        case .image?: Self.image.named(code)
        case .files?: Self.files.named(code)
        case .settings?: Self.settings.named(code)
        case .system?: Self.system.named(code)
        default: nil
        }
    }

    /// Source: `MGMT_ERR` of Zephyr's `mgmt_defines.h`.
    private static let common: [Int: String] = [
        1: "unknown error", 2: "not enough memory", 3: "invalid value", 4: "timeout", 5: "no such entry",
        6: "wrong state",
        7: "request or answer too large", 8: "not supported", 9: "corrupt", 10: "busy", 11: "access denied",
        12: "protocol version too old", 13: "protocol version too new", 256: "error of the device's own",
    ]
    /// Source: `IMG_MGMT_ERR`.
    private static let image = Names(
        "unknown error", "the flash's configuration cannot be read", "no image in the slot", "the image has no TLVs",
        "invalid TLV", "several hashes in the image", "wrong size of a TLV", "no image with that hash", "no free slot",
        "the flash cannot be opened", "the flash cannot be read", "the flash cannot be written",
        "the flash cannot be erased",
        "invalid slot", "not enough memory", "the flash's context is in use", "the flash's context is not set",
        "no device for the flash area", "invalid page", "invalid offset", "no length in the first request",
        "invalid image header", "not an MCUboot image", "invalid hash", "the image is for another address",
        "the version cannot be read", "the version that runs is newer", "an image is pending already",
        "invalid vector table", "the image is too large for its slot", "more data than announced",
        "confirming is not allowed", "the image to test is the one that runs")
    /// Source: `FS_MGMT_ERR`.
    private static let files = Names(
        "unknown error", "invalid name", "no such file", "it is a folder", "the file cannot be opened",
        "the offset cannot be reached", "the file cannot be read", "the file cannot be truncated",
        "the file cannot be deleted", "the file cannot be written", "invalid offset", "the offset is beyond the file",
        "no such hash or checksum", "no such mount point", "the file system is read-only", "the file is empty")
    /// Source: `SETTINGS_MGMT_ERR`.
    private static let settings = Names(
        "unknown error", "the name is too long", "no such setting", "reading is not supported", "no such root",
        "writing is not supported", "deleting is not supported")
    /// Source: `OS_MGMT_ERR`.
    private static let system = Names(
        "unknown error", "invalid format", "no answer to the query", "the clock is not set", "the clock does not answer"
    )

    /// Names of the codes from 1 on.
    private struct Names: Sendable {
        let names: [String]
        init(_ names: String...) { self.names = names }
        func named(_ code: Int) -> String? { (1...names.count).contains(code) ? names[code - 1] : nil }
    }
}

extension SMPRefusal: CustomStringConvertible {
    /// The code, whose it is, and its name.
    public var description: String {
        (group.map { "error \(code) of group \($0.rawValue)" } ?? "error \(code)") + (name.map { ", \($0)" } ?? "")
    }
}

extension FerryError {
    static func refused(_ refusal: SMPRefusal, _ what: String) -> FerryError {
        FerryError(.smpRefused, "The server refused \(what): \(refusal).")
    }
}

/// What every answer may hold.
struct RefusalBody: Codable, Sendable {
    struct Error: Codable, Sendable {
        var group: UInt16
        var rc: Int
    }

    var rc: Int?
    var err: Error?

    init(_ refusal: SMPRefusal, _ version: SMPVersion) {
        if let group = refusal.group, version == .two {
            err = Error(group: group.rawValue, rc: refusal.code)
        } else {
            rc = refusal.code
        }
    }

    var refusal: SMPRefusal? {
        if let err, err.rc != 0 { return SMPRefusal(group: SMPGroup(rawValue: err.group), code: err.rc) }
        if let rc, rc != 0 { return SMPRefusal(code: rc) }
        return nil
    }
}
