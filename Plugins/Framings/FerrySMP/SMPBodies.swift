// The bodies of requests and answers, as maps of CBOR. Keys are Zephyr's: doc/services/device_mgmt/smp_groups.

struct Empty: Codable, Sendable {}

struct EchoRequest: Codable, Sendable { var d: String }
struct EchoAnswer: Codable, Sendable { var r: String }

struct InformationRequest: Codable, Sendable { var format: String? }
struct InformationAnswer: Codable, Sendable { var output: String }

struct ParametersAnswer: Codable, Sendable {
    enum CodingKeys: String, CodingKey {
        case size = "buf_size"
        case count = "buf_count"
    }

    var size: Int
    var count: Int
}

struct ImageStateRequest: Codable, Sendable {
    var hash: [UInt8]?
    var confirm: Bool
}

struct ImageStateAnswer: Codable, Sendable { var images: [SMPImageState] }

struct ImageEraseRequest: Codable, Sendable { var slot: Int? }

/// The first request of an upload has all of it, the others only ``off`` and ``data``.
struct UploadRequest: Codable, Sendable {
    var off: UInt64
    var data: [UInt8]
    var len: UInt64?
    var sha: [UInt8]?
    var image: Int?
    var upgrade: Bool?
    /// Of a file.
    var name: String?
}

struct UploadAnswer: Codable, Sendable {
    var off: UInt64?
    var match: Bool?
}

struct DownloadRequest: Codable, Sendable {
    var off: UInt64
    var name: String
}

struct DownloadAnswer: Codable, Sendable {
    var off: UInt64
    var data: [UInt8]
    /// In the first answer only.
    var len: UInt64?
}

struct FileNameRequest: Codable, Sendable { var name: String }
struct FileStatusAnswer: Codable, Sendable { var len: UInt64 }

struct SettingRequest: Codable, Sendable {
    var name: String
    var val: [UInt8]?
}

struct SettingAnswer: Codable, Sendable { var val: [UInt8] }

struct ShellRequest: Codable, Sendable { var argv: [String] }
struct ShellAnswer: Codable, Sendable {
    var o: String
    var ret: Int?
}

/// What an image slot holds, as the server says.
public struct SMPImageState: Codable, Sendable, Hashable {
    /// The image's number; nil where the device has one.
    public var image: Int?
    /// 0 for the slot that runs, 1 for the one that is uploaded to.
    public var slot: Int
    /// The version, as text.
    public var version: String
    /// MCUboot's hash of header and body, which names the image; it is not that of the file.
    public var hash: [UInt8]?
    /// Whether it can be started.
    public var bootable: Bool?
    /// Whether it is started next.
    public var pending: Bool?
    /// Whether it stays.
    public var confirmed: Bool?
    /// Whether it runs.
    public var active: Bool?
    /// Whether it stays after the next start.
    public var permanent: Bool?

    /// Makes a state; fields that are false may be left out.
    public init(
        image: Int? = nil, slot: Int, version: String, hash: [UInt8]? = nil, bootable: Bool? = nil,
        pending: Bool? = nil, confirmed: Bool? = nil, active: Bool? = nil, permanent: Bool? = nil
    ) {
        self.image = image
        self.slot = slot
        self.version = version
        self.hash = hash
        self.bootable = bootable
        self.pending = pending
        self.confirmed = confirmed
        self.active = active
        self.permanent = permanent
    }
}

/// How large a request may be, and how many may be under way.
public struct SMPParameters: Sendable, Hashable {
    /// The most bytes of a request, its header included, however many writes it takes.
    public var bufferSize: Int
    /// How many requests and answers the server can hold.
    public var bufferCount: Int

    /// Makes parameters.
    public init(bufferSize: Int, bufferCount: Int) {
        self.bufferSize = bufferSize
        self.bufferCount = bufferCount
    }
}
