import Ferry
import Synchronization

/// A transport that is made when it is first used, and then kept. One that could not be made is tried again.
final class DeferredTransport: Transport {
    private typealias Making = Task<Result<any Transport, FerryError>, Never>

    private let making = Mutex<Making?>(nil)
    private let make: @Sendable () async throws(FerryError) -> any Transport

    init(_ make: @escaping @Sendable () async throws(FerryError) -> any Transport) { self.make = make }

    private func transport() async throws(FerryError) -> any Transport {
        let task = making.withLock { making in
            if let making { return making }
            let task = Making { [make] in
                do throws(FerryError) { return .success(try await make()) } catch { return .failure(error) }
            }
            making = task
            return task
        }
        let result = await task.value
        if case .failure = result { making.withLock { if $0 == task { $0 = nil } } }
        return try result.get()
    }

    func listen() async throws(FerryError) -> LinkListener { try await transport().listen() }

    func connect(timeout: Duration) async throws(FerryError) -> any Link {
        try await transport().connect(timeout: timeout)
    }

    func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        try await transport().connect(to: peer, timeout: timeout)
    }
}
