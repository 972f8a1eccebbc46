import Ferry
import FerrySocket
import Foundation
import Synchronization
import TestSupport

#if canImport(Glibc)
    import Glibc
#endif

/// A folder of its own for each test, short enough for the paths of sockets.
final class Folder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/ferry.XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) } ?? "/tmp/ferry-none"
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var socket: SocketAddress { .unix(path + "/socket") }
}

/// The kinds of sockets that are tested alike.
enum Kind: String, CaseIterable, Sendable {
    case unix, abstract, tcp, tcp6

    /// An address that nobody else has.
    func address(in folder: Folder) -> SocketAddress {
        switch self {
        case .unix: folder.socket
        case .abstract: .unix("@\(folder.path)")
        case .tcp: .tcp("127.0.0.1", 0)
        case .tcp6: .tcp("::1", 0)
        }
    }
}

/// Both ends of new connections over sockets.
struct SocketRig: Sendable {
    let folder = Folder()
    let transport: SocketTransport

    init(_ kind: Kind, chunk: Int = 512) throws {
        var configuration = SocketConfiguration()
        configuration.maximumChunkSize = chunk
        configuration.linger = .seconds(2)
        transport = try SocketTransport(kind.address(in: folder), configuration: configuration)
    }

    func makePair() async throws -> (any Link, any Link) {
        let listener = try await transport.listen()
        defer { listener.close() }
        let near = try await transport.connect(timeout: .unreached)
        for await far in listener.links { return (near, far) }
        throw FerryError(.peerNotFound, "The listener ended.")
    }
}

/// What an owner is told of a link, to wait for.
final class Owner: LinkReceiver {
    struct Record { var bytes = 0; var chunks: [[UInt8]] = []; var readies = 0; var reasons: [FerryError] = [] }
    let record = Mutex(Record())

    func linkIsReady() { record.withLock { $0.readies += 1 } }
    func linkDidReceive(_ chunk: RawSpan) {
        let bytes = chunk.withUnsafeBytes { Array($0) }
        record.withLock {
            $0.chunks.append(bytes); $0.bytes += bytes.count
        }
    }
    func linkDidClose(_ reason: FerryError) { record.withLock { $0.reasons.append(reason) } }

    var reasons: [FerryError] { record.withLock { $0.reasons } }
    var chunks: [[UInt8]] { record.withLock { $0.chunks } }
}
