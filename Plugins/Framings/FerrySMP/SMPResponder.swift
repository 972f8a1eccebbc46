public import Ferry
import Synchronization

/// An ``SMPServer`` that several links share.
public final class SMPDevice: Sendable {
    private let state: Mutex<SMPServer>

    /// Makes a device.
    public init(_ server: SMPServer = SMPServer()) { state = Mutex(server) }

    /// The server as it is now.
    public var server: SMPServer { state.withLock { $0 } }

    /// Changes it, between two requests.
    public func change(_ body: (inout SMPServer) -> Void) { state.withLock { body(&$0) } }

    func answer(_ request: [UInt8]) -> [UInt8]? { state.withLock { $0.answer(request) } }
}

/// Serves one link from an ``SMPDevice``, in the order of requests. When the last reference goes, the link is closed.
public final class SMPResponder: Sendable {
    private let channel: MessageChannel<[UInt8], [UInt8]>

    /// Waits until the link has ended, and says why; nil when the task is cancelled before.
    public var closed: FerryError? { get async { await channel.closed } }

    /// Takes a link that it alone uses, and serves it.
    ///
    /// - Parameters:
    ///   - link: the link to the client.
    ///   - device: what answers. A request is read when the answer to the one before is out.
    ///   - limits: what the client can make grow, bounded.
    ///   - time: the clock for timeouts.
    /// - Throws: `invalidConfiguration` as `MessageChannel`.
    public init(
        over link: any Link, _ device: SMPDevice, limits: Limits = Limits(), time: any TimeSource = SystemTime()
    ) throws(FerryError) {
        channel = try MessageChannel(over: link, codec: BytesCodec(), framing: SMPFraming(), limits: limits, time: time)
        Task { [channel] in
            for await result in channel.results {
                guard case .success(let request) = result, let answer = device.answer(request) else { continue }
                try? await channel.send(answer)
            }
        }
    }

    deinit { channel.close() }

    /// Closes the link.
    public func close() { channel.close() }
}
