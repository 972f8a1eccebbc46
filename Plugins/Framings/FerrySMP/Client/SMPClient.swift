public import Ferry
import FerryCBOR
import Synchronization

/// A client of a device that is managed by SMP: Zephyr's MCUmgr and what speaks like it.
///
///     let link = try await GATTTransport(adapter: adapter, configuration: .smp).connect(timeout: .seconds(10))
///     let device = try SMPClient(over: link)
///     print(try await device.echo("hello"))
///     try await device.uploadImage(firmware) { print($0.fraction) }
///
/// Requests may be made at once, from any task; each finds its answer by its sequence number. A request that times out or is
/// cancelled is forgotten, and its number is not used again until the late answer, or many others, have come. When the last
/// reference goes, the link is closed.
public final class SMPClient: Sendable {
    private let link: any Link
    private let channel: MessageChannel<[UInt8], [UInt8]>
    private let book = SMPRequestBook()
    private let time: any TimeSource
    private let version: SMPVersion
    /// How long a request waits for its answer, unless it says otherwise.
    public let timeout: Duration

    private enum Known {
        case nothing
        case parameters(SMPParameters)
        /// It does not know the command: it was built without reassembly.
        case oneChunk
    }
    private let known = Mutex(Known.nothing)

    /// Opens a client over a link that it alone uses, and activates the link.
    ///
    /// - Parameters:
    ///   - link: the link to the device, over GATT with `GATTConfiguration.smp`.
    ///   - version: the version that requests state. Servers of before version 2 pass over it; answers of both are read.
    ///   - timeout: how long a request waits for its answer.
    ///   - limits: what the device can make grow, bounded.
    ///   - time: the clock for timeouts.
    /// - Throws: `invalidConfiguration` as `MessageChannel`.
    public convenience init(
        over link: any Link, version: SMPVersion = .two, timeout: Duration = .seconds(10), limits: Limits = Limits(),
        time: any TimeSource = SystemTime()
    ) throws(FerryError) {
        try self.init(unreadOver: link, version: version, timeout: timeout, limits: limits, time: time)
        Task { [channel, book] in await Self.read(channel, book) }
    }

    /// A client whose answers are not read until ``readAnswers()``: for runs under virtual time, which must know each task.
    package init(
        unreadOver link: any Link, version: SMPVersion = .two, timeout: Duration = .seconds(10),
        limits: Limits = Limits(),
        time: any TimeSource
    ) throws(FerryError) {
        self.link = link
        self.version = version
        self.timeout = timeout
        self.time = time
        channel = try MessageChannel(over: link, codec: BytesCodec(), framing: SMPFraming(), limits: limits, time: time)
    }

    /// Reads answers until the link has ended or the task is cancelled.
    package func readAnswers() async { await Self.read(channel, book) }

    private static func read(_ channel: MessageChannel<[UInt8], [UInt8]>, _ book: SMPRequestBook) async {
        for await result in channel.results {
            // A request from the device, and a damaged message, answer nothing; the request waits until its deadline.
            guard case .success(let message) = result, let header = SMPHeader(message) else { continue }
            book.answer(header, message)
        }
        book.end(channel.closeReason ?? FerryError(.closed, "The channel has ended."))
    }

    deinit { channel.close() }

    /// Why the link has ended, or nil.
    public var closeReason: FerryError? { channel.closeReason }
    /// Waits until the link has ended, and says why; nil when the task is cancelled before.
    public var closed: FerryError? { get async { await channel.closed } }
    /// Closes the link. Requests that wait fail.
    public func close() { channel.close() }

    // MARK: Any command

    /// Sends a request with a body of CBOR, and returns the answer's.
    ///
    /// - Parameters:
    ///   - operation: `read` or `write`.
    ///   - group: the group of commands.
    ///   - command: the command in it.
    ///   - body: what it says, as a map.
    ///   - answer: what the answer says, as a map; most often known from where it goes.
    ///   - what: the request in words, for errors: `the echo`.
    ///   - timeout: how long to wait; nil for ``timeout``.
    /// - Throws: `smp.refused` with the server's code; `timedOut`, `cancelled`, `messageTooLarge` where the server cannot take the
    ///   request, `encodingFailed`, `decodingFailed`, or why the link has ended.
    public func request<Body: Codable & Sendable, Answer: Codable & Sendable>(
        _ operation: SMPOperation, _ group: SMPGroup, _ command: UInt8, _ body: Body,
        _ answer: Answer.Type = Answer.self,
        what: String, timeout: Duration? = nil
    ) async throws(FerryError) -> Answer {
        let message = try await exchange(
            operation, group, command, try CBORCodec<Body>().encode(body), timeout: timeout)
        return try Self.answer(in: message, what)
    }

    /// Sends a request with any payload, for groups of a device's own, and returns the whole answer, header included.
    ///
    /// - Throws: as ``request(_:_:_:_:_:what:timeout:)``, except for what the payload says.
    public func exchange(
        _ operation: SMPOperation, _ group: SMPGroup, _ command: UInt8, _ payload: [UInt8], timeout: Duration? = nil
    ) async throws(FerryError) -> [UInt8] {
        let count = payload.count + SMPHeader.byteCount
        let isParameters = group == .system && command == SMPCommand.parameters
        if count > link.maximumChunkSize, !isParameters {
            let limit = try await largestRequest()
            guard count <= limit else {
                throw FerryError(
                    .messageTooLarge,
                    "The request has \(count) bytes; the server takes \(limit) at once. Send less at once, or raise the ATT_MTU.",
                    fate: .nothingSent)
            }
        }
        let (results, source) = AsyncStream<Result<[UInt8], FerryError>>.makeStream()
        let number = start(operation, group, command, payload, timeout: timeout) {
            source.yield($0)
            source.finish()
        }
        for await result in results { return try result.get() }
        let error = FerryError(
            .cancelled, "The task was cancelled while it waited for the server's answer.", fate: .mayHaveArrived)
        if let number { book.fail(number, error) }
        throw error
    }

    /// Sends a request that fits, in the order of calls; the completion is called once. Returns its number, if it has one.
    @discardableResult
    func start(
        _ operation: SMPOperation, _ group: SMPGroup, _ command: UInt8, _ payload: [UInt8], timeout: Duration?,
        _ completion: @escaping SMPRequestBook.Completion
    ) -> UInt8? {
        guard payload.count <= SMPHeader.maximumPayload else {
            completion(
                .failure(
                    FerryError(
                        .messageTooLarge,
                        "The request has \(payload.count) bytes after its header; SMP can say \(SMPHeader.maximumPayload). Send"
                            + " less at once.", fate: .nothingSent)))
            return nil
        }
        guard let number = book.begin(operation, group, command, completion) else { return nil }
        let header = SMPHeader(version: version, operation: operation, group: group, sequence: number, command: command)
        let limit = timeout ?? self.timeout
        let timer = time.schedule(at: time.now + limit) { [book] in
            book.fail(
                number,
                FerryError(
                    .timedOut,
                    "The server has not answered command \(command) of group \(group.rawValue) within \(limit).",
                    fate: .mayHaveArrived))
        }
        book.keep(timer, for: number)
        do throws(FerryError) {
            let message = try channel.enqueue(header.message(payload))
            Task { [book] in
                do throws(FerryError) { try await message.sent() } catch { book.fail(number, error) }
            }
        } catch {
            book.fail(number, error)
        }
        return number
    }

    /// The body of an answer, or what the server says instead.
    static func answer<Answer: Codable & Sendable>(in message: [UInt8], _ what: String) throws(FerryError) -> Answer {
        let body = Array(message.dropFirst(SMPHeader.byteCount))
        do throws(FerryError) {
            // An answer without a body says that it is done.
            let refusal = body.isEmpty ? nil : try CBORCodec<RefusalBody>().decode(body).refusal
            if let refusal { throw FerryError.refused(refusal, what) }
            return try CBORCodec<Answer>().decode(body.isEmpty ? [0xA0] : body)
        } catch {
            guard error.code == .decodingFailed else { throw error }
            throw FerryError(.decodingFailed, "The answer to \(what) cannot be read.", cause: error)
        }
    }

    // MARK: How much the server takes

    /// The size and number of the server's buffers; nil where the server does not tell, which is one without reassembly: each
    /// request must fit one chunk. Asked once.
    ///
    /// - Throws: as ``request(_:_:_:_:_:what:timeout:)``, except `smp.refused`.
    public func parameters() async throws(FerryError) -> SMPParameters? {
        switch known.withLock({ $0 }) {
        case .parameters(let parameters): return parameters
        case .oneChunk: return nil
        case .nothing: break
        }
        do throws(FerryError) {
            let answer: ParametersAnswer = try await request(
                .read, .system, SMPCommand.parameters, Empty(), what: "the question for its buffers")
            guard answer.size >= 32, answer.count >= 1 else {
                throw FerryError(
                    .smpAnswer,
                    "The server says that it has \(answer.count) buffers of \(answer.size) bytes; at least 1 of 32 is needed."
                )
            }
            let parameters = SMPParameters(bufferSize: answer.size, bufferCount: answer.count)
            known.withLock { $0 = .parameters(parameters) }
            return parameters
        } catch {
            guard error.code == .smpRefused else { throw error }
            known.withLock { $0 = .oneChunk }
            return nil
        }
    }

    /// The most bytes of a request, header included.
    func largestRequest() async throws(FerryError) -> Int {
        guard let parameters = try await parameters() else { return link.maximumChunkSize }
        return min(parameters.bufferSize, SMPHeader.maximumPayload)
    }
}
