import Ferry
import FerryCBOR
import FerryDigest

/// A server of SMP, as a value without I/O: for tests of clients, and for demonstrations. It answers as Zephyr's does.
///
/// It holds echo, parameters, information, reset, images, settings and files in memory, bounded by its configuration.
public struct SMPServer: Sendable {
    /// What the server can do, and what it does wrong.
    public struct Configuration: Sendable {
        /// The most bytes of a request. Larger ones are dropped, as Zephyr does.
        public var bufferSize = 2475
        /// How many buffers it says that it has.
        public var bufferCount = 4
        /// Whether it tells its buffers, as a server with reassembly does.
        public var tellsParameters = true
        /// How errors are written.
        public var errors = SMPVersion.two
        /// What it says of itself.
        public var information = "Zephyr"
        /// The most bytes of an image, a file, or a setting.
        public var maximumSize = 16 << 20
        /// The most files, and the most settings.
        public var maximumNames = 64
        /// The most bytes of a file in one answer.
        public var downloadSize = 200
        /// The requests that are dropped without an answer, counted from 0.
        public var dropped: Set<Int> = []
        /// The requests before which an upload goes back to an offset: what followed it is forgotten.
        public var setbacks: [Int: Int] = [:]

        /// The defaults, without faults.
        public init() {}
    }

    /// What it can do.
    public let configuration: Configuration
    /// Files by path.
    public var files: [String: [UInt8]] = [:]
    /// Settings by name.
    public var settings: [String: [UInt8]] = [:]
    /// The image slots as they are listed.
    public var images: [SMPImageState] = []
    /// The image that was uploaded whole.
    public private(set) var uploadedImage: [UInt8]?
    /// How often it was reset.
    public private(set) var resets = 0
    /// How many requests have come, and the size of the largest.
    public private(set) var requestCount = 0
    /// The largest request's bytes, header included.
    public private(set) var largestRequest = 0

    /// An image that has arrived in part.
    private struct Upload {
        let size: Int
        let sha: [UInt8]?
        var bytes: [UInt8] = []
    }
    private var upload: Upload?

    /// Makes a server.
    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// Answers a request, header included; nil for what gets no answer.
    public mutating func answer(_ request: [UInt8]) -> [UInt8]? {
        let number = requestCount
        requestCount += 1
        largestRequest = max(largestRequest, request.count)
        if let offset = configuration.setbacks[number] { setBack(to: offset) }
        guard !configuration.dropped.contains(number), request.count <= configuration.bufferSize,
            let header = SMPHeader(request), let response = header.operation.response
        else { return nil }
        var answer = header
        answer.operation = response
        answer.version = configuration.errors
        let body = Array(request.dropFirst(SMPHeader.byteCount))
        do {
            return answer.message(try self.body(header, body))
        } catch {
            let body = RefusalBody(error, configuration.errors)
            return answer.message((try? CBORCodec<RefusalBody>().encode(body)) ?? [0xA0])
        }
    }

    private mutating func setBack(to offset: Int) {
        guard offset > 0 else { return upload = nil }
        if let count = upload?.bytes.count, count > offset { upload?.bytes.removeLast(count - offset) }
    }

    private mutating func body(_ header: SMPHeader, _ body: [UInt8]) throws(SMPRefusal) -> [UInt8] {
        let isWrite = header.operation == .write
        switch (header.group, header.command, isWrite) {
        case (.system, SMPCommand.echo, _):
            return try encoded(EchoAnswer(r: decoded(body, EchoRequest.self).d))
        case (.system, SMPCommand.parameters, false) where configuration.tellsParameters:
            return try encoded(ParametersAnswer(size: configuration.bufferSize, count: configuration.bufferCount))
        case (.system, SMPCommand.information, false):
            return try encoded(InformationAnswer(output: configuration.information))
        case (.system, SMPCommand.reset, true):
            resets += 1
            upload = nil
            return [0xA0]
        case (.image, SMPCommand.imageState, false): return try encoded(ImageStateAnswer(images: images))
        case (.image, SMPCommand.imageState, true):
            try setState(decoded(body))
            return try encoded(ImageStateAnswer(images: images))
        case (.image, SMPCommand.imageUpload, true): return try encoded(uploadImage(decoded(body)))
        case (.image, SMPCommand.imageErase, true):
            upload = nil
            uploadedImage = nil
            return [0xA0]
        case (.settings, _, _): return try setting(header.command, isWrite, body)
        case (.files, _, _): return try file(header.command, isWrite, body)
        default: throw .notSupported
        }
    }

    // MARK: Images

    private mutating func setState(_ request: ImageStateRequest) throws(SMPRefusal) {
        let place = images.firstIndex { request.hash == nil ? $0.active == true : $0.hash == request.hash }
        guard let place else { throw SMPRefusal(group: .image, code: 8) }
        if request.confirm { images[place].confirmed = true } else { images[place].pending = true }
    }

    private mutating func uploadImage(_ request: UploadRequest) throws(SMPRefusal) -> UploadAnswer {
        guard request.off > 0 || request.len != nil else { throw SMPRefusal(group: .image, code: 21) }
        if request.off == 0 {
            guard let size = request.len, size <= UInt64(configuration.maximumSize) else {
                throw SMPRefusal(group: .image, code: 30)
            }
            // The same image again: go on where it stopped.
            if let upload, let sha = request.sha, upload.sha == sha, upload.size == Int(size), !upload.bytes.isEmpty {
                return UploadAnswer(off: UInt64(upload.bytes.count))
            }
            upload = Upload(size: Int(size), sha: request.sha)
        }
        guard var current = upload else { return UploadAnswer(off: 0) }
        upload = nil
        defer { if current.bytes.count < current.size || current.size == 0 { upload = current } }
        guard request.off == UInt64(current.bytes.count) else { return UploadAnswer(off: UInt64(current.bytes.count)) }
        guard request.data.count <= current.size - current.bytes.count else {
            throw SMPRefusal(group: .image, code: 31)
        }
        current.bytes += request.data
        guard current.bytes.count == current.size else { return UploadAnswer(off: UInt64(current.bytes.count)) }
        uploadedImage = current.bytes
        return UploadAnswer(
            off: UInt64(current.size), match: current.sha.map { $0 == SHA256.digest(of: current.bytes) })
    }

    // MARK: Settings and files

    private mutating func setting(_ command: UInt8, _ isWrite: Bool, _ body: [UInt8]) throws(SMPRefusal) -> [UInt8] {
        switch (command, isWrite) {
        case (SMPCommand.setting, false):
            guard let value = settings[try decoded(body, SettingRequest.self).name] else {
                throw SMPRefusal(group: .settings, code: 3)
            }
            return try encoded(SettingAnswer(val: value))
        case (SMPCommand.setting, true):
            let request: SettingRequest = try decoded(body)
            guard let value = request.val else { throw .invalid }
            guard settings[request.name] != nil || settings.count < configuration.maximumNames else { throw .noMemory }
            settings[request.name] = value
        case (SMPCommand.settingDelete, true):
            guard settings.removeValue(forKey: try decoded(body, SettingRequest.self).name) != nil else {
                throw SMPRefusal(group: .settings, code: 3)
            }
        case (SMPCommand.settingCommit, true), (SMPCommand.settingStore, _): break
        default: throw .notSupported
        }
        return [0xA0]
    }

    private mutating func file(_ command: UInt8, _ isWrite: Bool, _ body: [UInt8]) throws(SMPRefusal) -> [UInt8] {
        switch (command, isWrite) {
        case (SMPCommand.file, false):
            let request: DownloadRequest = try decoded(body)
            guard let file = files[request.name] else { throw SMPRefusal(group: .files, code: 3) }
            guard request.off <= UInt64(file.count) else { throw SMPRefusal(group: .files, code: 12) }
            let start = Int(request.off)
            let end = min(file.count, start + max(1, configuration.downloadSize))
            return try encoded(
                DownloadAnswer(
                    off: request.off, data: Array(file[start..<end]), len: start == 0 ? UInt64(file.count) : nil))
        case (SMPCommand.file, true):
            let request: UploadRequest = try decoded(body)
            guard let name = request.name else { throw SMPRefusal(group: .files, code: 2) }
            if request.off == 0 {
                guard files[name] != nil || files.count < configuration.maximumNames else { throw .noMemory }
                files[name] = []
            }
            guard let file = files[name] else { throw SMPRefusal(group: .files, code: 3) }
            guard request.off == UInt64(file.count) else { return try encoded(UploadAnswer(off: UInt64(file.count))) }
            guard file.count + request.data.count <= configuration.maximumSize else { throw .noMemory }
            files[name]? += request.data
            return try encoded(UploadAnswer(off: UInt64(file.count + request.data.count)))
        case (SMPCommand.fileStatus, false):
            guard let file = files[try decoded(body, FileNameRequest.self).name] else {
                throw SMPRefusal(group: .files, code: 3)
            }
            return try encoded(FileStatusAnswer(len: UInt64(file.count)))
        case (SMPCommand.fileClose, true): return [0xA0]
        default: throw .notSupported
        }
    }

    // MARK: CBOR

    private func decoded<Body: Codable & Sendable>(
        _ body: [UInt8], _ type: Body.Type = Body.self
    ) throws(SMPRefusal) -> Body {
        do { return try CBORCodec<Body>().decode(body) } catch { throw .invalid }
    }

    private func encoded<Body: Codable & Sendable>(_ body: Body) throws(SMPRefusal) -> [UInt8] {
        do { return try CBORCodec<Body>().encode(body) } catch { throw SMPRefusal(code: 1) }
    }
}

extension SMPRefusal: Error {
    static let invalid = SMPRefusal(code: 3)
    static let noMemory = SMPRefusal(code: 2)
    static let notSupported = SMPRefusal(code: 8)
}
