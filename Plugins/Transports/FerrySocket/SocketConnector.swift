import Dispatch
import Ferry
import Synchronization

/// An attempt to connect, which is repeated until a peer listens or the time is over.
struct SocketConnector: Sendable {
    private let address: SocketAddress
    private let configuration: SocketConfiguration
    private let time: any TimeSource
    /// The port to connect to where the address names none: the one that the transport listens at.
    private let ownPort: @Sendable () -> UInt16?

    init(
        _ address: SocketAddress, _ configuration: SocketConfiguration, _ time: any TimeSource,
        ownPort: @escaping @Sendable () -> UInt16?
    ) {
        self.address = address
        self.configuration = configuration
        self.time = time
        self.ownPort = ownPort
    }

    func connect(until deadline: Timestamp) async throws(FerryError) -> any Link {
        var pause = Duration.milliseconds(10)
        var latest: FerryError?
        while true {
            do throws(FerryError) {
                switch try await attempt(until: deadline) {
                case .connected(let descriptor): return try link(over: descriptor)
                case .failed(let error): throw error
                case .mayPass(let error): latest = error
                case .crowded(let error):
                    latest = error
                    // There will be room in milliseconds, and others that wait for it do not pause.
                    pause = .milliseconds(5)
                }
            } catch {
                // What the attempts before it met says more than that the time is over.
                throw error.code == .timedOut ? latest ?? error : error
            }
            if let latest, time.now + pause >= deadline { throw latest }
            do { try await time.sleep(for: pause) } catch { throw .connectingWasCancelled }
            pause = min(pause * 2, .milliseconds(500))
        }
    }

    private func link(over descriptor: Descriptor) throws(FerryError) -> any Link {
        if case .tcp = address.kind { descriptor.tuneTCP(configuration) }
        let connection = SocketConnection(owning: descriptor, configuration, time)
        let link = SocketLink(
            connection, peer: PeerIdentity(address.description, certainty: .address), role: .initiator)
        if Task.isCancelled {
            link.close()
            throw .connectingWasCancelled
        }
        return link
    }

    private enum Outcome {
        case connected(Descriptor)
        case failed(FerryError)
        case mayPass(FerryError)
        /// A peer listens, and more connections than its queue holds want to be accepted (connect(2), `EAGAIN`).
        case crowded(FerryError)
    }

    private func attempt(until deadline: Timestamp) async throws(FerryError) -> Outcome {
        let addresses: [SystemAddress]
        switch address.kind {
        case .unix(let path):
            // A socket may come; while this stands in its place it cannot.
            if let obstacle = UnixFile.obstacle(at: path) {
                return .failed(FerryError(.transportUnavailable, "Cannot connect to \(address): \(obstacle)."))
            }
            addresses = [try SystemAddress(unixPath: path)]
        case .tcp(let host, let named):
            guard let port = named == 0 ? ownPort() : named else { return outcome(.refused) }
            addresses = try await Resolver.resolve(host, port, isListening: false, until: deadline, time)
        }
        var latest = Problem.refused
        for (index, system) in addresses.enumerated() {
            // An address that does not answer leaves time for the others.
            let left = deadline - time.now
            let share = time.now + left / (addresses.count - index)
            do throws(Problem) { return .connected(try await connect(to: system, until: share)) } catch {
                if Task.isCancelled { throw .connectingWasCancelled }
                latest = error
            }
        }
        return outcome(latest)
    }

    private func outcome(_ problem: Problem) -> Outcome {
        switch problem {
        case .refused, .missing:
            .mayPass(
                FerryError(
                    .peerNotFound,
                    "No program listens at \(address). Start the other side, or look at the address and the firewall."))
        case .wrongKind:
            .failed(
                FerryError(.transportUnavailable, "Cannot connect to \(address): another kind of socket listens there.")
            )
        case .timedOut: .failed(FerryError(.timedOut, "\(address) did not answer in time."))
        case .wouldBlock:
            .crowded(
                FerryError(.timedOut, "Cannot connect to \(address): its queue is full of connections. Try again."))
        default:
            problem.mayPass
                ? .mayPass(FerryError(.timedOut, "Cannot connect to \(address): \(problem.text)."))
                : .failed(FerryError(.transportUnavailable, "Cannot connect to \(address): \(problem.text)."))
        }
    }

    private func connect(to system: SystemAddress, until deadline: Timestamp) async throws(Problem) -> Descriptor {
        let isUnix = if case .unix = address.kind { true } else { false }
        let descriptor = try Descriptor.open(system.family, isUnix ? Descriptor.unixKind : .stream)
        do throws(Problem) {
            do throws(Problem) { try system.connect(descriptor) } catch {
                guard error == .inProgress || error == .interrupted else { throw error }
                guard await Readiness.wait(for: descriptor, until: deadline, time) else { throw .timedOut }
                if let problem = descriptor.takeProblem() { throw problem }
            }
            return descriptor
        } catch {
            descriptor.close()
            throw error
        }
    }
}

extension FerryError {
    static var connectingWasCancelled: FerryError { FerryError(.cancelled, "Connecting was cancelled.") }
}

/// The outcome of something that may come, be cancelled, or not come in time: whichever is first.
final class FirstOutcome<Value: Sendable>: Sendable {
    private enum State {
        case none, came(Value), taken
        case waits(CheckedContinuation<Value, Never>)
    }

    private let state = Mutex(State.none)

    func set(_ value: Value) {
        let waiter = state.withLock { state -> CheckedContinuation<Value, Never>? in
            switch state {
            case .none:
                state = .came(value)
                return nil
            case .waits(let waiter):
                state = .taken
                return waiter
            case .came, .taken: return nil
            }
        }
        waiter?.resume(returning: value)
    }

    /// Waits for it; `otherwise` when the deadline comes first, or the task is cancelled.
    func value(until deadline: Timestamp, _ time: any TimeSource, otherwise: Value) async -> Value {
        let timer = time.schedule(at: deadline) { self.set(otherwise) }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await value()
        } onCancel: {
            set(otherwise)
        }
    }

    /// Waits for it, however long that takes.
    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                if case .came(let value) = state {
                    state = .taken
                    return value
                }
                state = .waits(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}

/// Waiting until a socket that connects has done so, or failed.
enum Readiness {
    static func wait(for descriptor: Descriptor, until deadline: Timestamp, _ time: any TimeSource) async -> Bool {
        let outcome = FirstOutcome<Bool>()
        let isGone = FirstOutcome<Bool>()
        let watch = Watch(descriptor, on: .global()) { _ in outcome.set(true) }
        watch.want(.writable)
        let isReady = await outcome.value(until: deadline, time, otherwise: false)
        watch.cancel { isGone.set(true) }
        // The descriptor is not closed under the poller's feet. This takes no time, and must not be cut short.
        _ = await isGone.value()
        return isReady
    }
}

/// Looking hosts up without waiting longer than wanted. The system's resolver cannot be called off: it ends in its own time.
enum Resolver {
    static func resolve(
        _ host: String, _ port: UInt16, isListening: Bool, until deadline: Timestamp, _ time: any TimeSource
    ) async throws(FerryError) -> [SystemAddress] {
        let outcome = FirstOutcome<Result<[SystemAddress], SystemAddress.ResolvingProblem>?>()
        DispatchQueue.global().async {
            outcome.set(SystemAddress.resolve(host, port, isListening: isListening))
        }
        switch await outcome.value(until: deadline, time, otherwise: nil) {
        case .success(let addresses)?: return addresses
        case .failure(let problem)?:
            throw FerryError(.transportUnavailable, "The host '\(host)' was not found: \(problem.text).")
        case nil:
            if Task.isCancelled { throw .connectingWasCancelled }
            throw FerryError(.timedOut, "The host '\(host)' was not found in time.")
        }
    }
}
