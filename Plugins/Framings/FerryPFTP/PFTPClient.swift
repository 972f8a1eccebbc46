public import Ferry

/// A client of a watch or strap of Polar's: its files and folders, and queries.
///
///     let link = try await GATTTransport(adapter: adapter, configuration: .polarPFTP).connect(timeout: .seconds(10))
///     let device = try PFTPClient(over: link)
///     for entry in try await device.list("/U/0/") { print(entry.name, entry.size) }
///
/// An answer does not say which request it is for. So there is one request at a time, and the link is closed when one ends without its answer
/// (by its timeout, or as its task is cancelled): the late answer would be taken for the next one's. When the last reference goes, the link is
/// closed.
public final class PFTPClient: Sendable {
    private let channel: MessageChannel<[UInt8], [UInt8]>
    /// How long a request waits for its answer, unless it says otherwise.
    public let timeout: Duration
    private let requests: LoneRequests<[UInt8]>

    /// Opens a client over a link that it alone uses, and activates the link.
    ///
    /// - Parameters:
    ///   - link: the link to the device, over GATT with `GATTConfiguration.polarPFTP`.
    ///   - timeout: how long a request waits for its answer; 90 s as in Polar's own library, for large files.
    ///   - limits: what the device can make grow, bounded; files have at most `maximumMessageSize` bytes less 2.
    ///   - time: the clock for timeouts.
    /// - Throws: `invalidConfiguration` as `MessageChannel`.
    public init(
        over link: any Link, timeout: Duration = .seconds(90), limits: Limits = Limits(),
        time: any TimeSource = SystemTime()
    ) throws(FerryError) {
        self.timeout = timeout
        channel = try MessageChannel(
            over: link, codec: BytesCodec(), framing: PFTPFraming(errors: .leadMessages), limits: limits, time: time)
        requests = LoneRequests(over: channel, time: time)
        time.startTask { [requests, channel] in
            for await case .success(let message) in channel.results { requests.take(message) }
            requests.end()
        }
    }

    deinit { channel.close() }

    /// Why the link has ended, or nil.
    public var closeReason: FerryError? { channel.closeReason }
    /// Closes the link. A request that waits fails.
    public func close() { channel.close() }

    /// The bytes of a file.
    ///
    /// - Throws: as ``ask(_:timeout:)``.
    public func get(_ path: String) async throws(FerryError) -> [UInt8] { try await ask(.get(path)) }

    /// The entries of a folder, in the device's order.
    ///
    /// - Parameter path: from the root, such as `/U/0/`; a slash is added where it ends without one.
    /// - Throws: as ``ask(_:timeout:)``; `decodingFailed` where the answer is no list.
    public func list(_ path: String) async throws(FerryError) -> [PFTPEntry] {
        let answer = try await ask(.get(path.hasSuffix("/") ? path : path + "/"))
        guard let entries = PFTPEntry.list(in: answer) else {
            throw FerryError(
                .decodingFailed,
                "The device answered for \(path) with \(answer.count) bytes that are no list of a folder.")
        }
        return entries
    }

    /// Writes a file.
    ///
    /// - Throws: as ``ask(_:timeout:)``.
    public func put(_ path: String, _ bytes: [UInt8]) async throws(FerryError) {
        _ = try await ask(.put(path, bytes))
    }

    /// Removes a file or folder.
    ///
    /// - Throws: as ``ask(_:timeout:)``.
    public func remove(_ path: String) async throws(FerryError) { _ = try await ask(.remove(path)) }

    /// Sends a request and waits for its answer.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - timeout: how long it may take in all; nil for ``timeout``.
    /// - Returns: the answer's bytes.
    /// - Throws: `pftp.refused` with the device's number; `pftp.busy` while another request waits; `encodingFailed` for
    ///   a path that is too long, `messageTooLarge`, `timedOut`, `cancelled`, or why the link has
    ///   ended.
    public func ask(_ request: PFTPRequest, timeout: Duration? = nil) async throws(FerryError) -> [UInt8] {
        let message = [0, 0] + (try request.bytes())
        return try await requests.ask(
            message, within: timeout ?? self.timeout,
            busy: FerryError(
                .pftpBusy,
                "Another request waits for its answer, and answers do not say whose they are. Ask when it has ended.",
                fate: .nothingSent), words: " \(request.words)"
        ) { (answer) throws(FerryError) in try Self.content(of: answer, request) }
    }

    private static func content(of answer: [UInt8], _ request: PFTPRequest) throws(FerryError) -> [UInt8] {
        let number = UInt16(answer[0]) | UInt16(answer[1]) << 8
        guard number == 0 else { throw .pftpRefused(number, request.words) }
        return Array(answer.dropFirst(2))
    }
}

extension FerryError.Code {
    /// The device answered with an error; the message names it.
    public static let pftpRefused = FerryError.Code("pftp.refused")
    /// Another request waits for its answer.
    public static let pftpBusy = FerryError.Code("pftp.busy")
}

extension FerryError {
    /// Numbers of `PbPFtpError`. Source: Polar's `pftp_error.proto`.
    static func pftpRefused(_ number: UInt16, _ what: String) -> FerryError {
        let known: [UInt16: String] = [
            1: "it restarts", 2: "try again", 100: "an error of the host", 101: "no such command",
            102: "a wrong parameter",
            103: "no such file or folder", 104: "the folder is there", 105: "the file is there", 106: "not permitted",
            107: "no such user", 108: "it took too long", 200: "an error of the device", 201: "not implemented",
            202: "it is busy", 203: "wrong content", 204: "a wrong checksum", 205: "its disk is full",
            206: "something else is needed first", 207: "its buffer is too small", 208: "it waits to be idle",
        ]
        return FerryError(
            .pftpRefused, "The device answered \(what) with error \(number): \(known[number] ?? "unknown here").",
            fate: .mayHaveArrived)
    }
}
