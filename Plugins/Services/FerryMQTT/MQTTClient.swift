#if MQTT
    import CMosquitto
    import Dispatch
    import Ferry
    import FerryFleet
    import Glibc
    import Synchronization

    /// A client of libmosquitto's, on its own thread, which connects again until it is closed.
    ///
    /// libmosquitto's own thread ends for good after some errors of a connection (`mosquitto_loop_forever(3)`), such as that of a broker
    /// whose memory is full.
    final class MQTTClient: Sendable {
        /// The reason code of a PUBACK, or why there is none.
        private typealias Reason = Result<Int32, FerryError>
        private typealias Answering = CheckedContinuation<Reason, Never>

        private enum Pending {
            case waiting(Answering, until: ContinuousClock.Instant)
            /// Answered with `unanswered`; libmosquitto still has it.
            case abandoned

            var waiting: Answering? {
                if case .waiting(let continuation, _) = self { continuation } else { nil }
            }
        }

        private enum Phase {
            case connecting(CheckedContinuation<Result<Void, FerryError>, Never>)
            case connected
            case away
            case closed
        }

        private struct State {
            var phase = Phase.away
            /// Messages on their way by libmosquitto's numbers.
            var pending: [Int32: Pending] = [:]
            /// Answers that came before publishing had returned the message's number.
            var early: [Int32: Int32] = [:]
            /// All of them, and those that are being published.
            var inFlight = 0
            var sweeper: Task<Void, Never>?
            /// The last refusal to connect.
            var trouble: FerryError?
            /// How many connections there have been.
            var connections: UInt64 = 0
            /// Which of libmosquitto's clients it is: each connection has a new one, whose numbers begin again.
            var generation: UInt64 = 0
        }

        /// libmosquitto's client, which may be called from any thread until it is destroyed.
        private struct Handle: @unchecked Sendable { let pointer: OpaquePointer }

        let configuration: MQTTConfiguration
        private let state = Mutex(State())
        /// `nil` when it was destroyed, which the thread does where there is one. Publishing and destroying exclude each other.
        private let handle: Mutex<Handle?>
        /// Has the thread as a member.
        private let thread = DispatchGroup()
        /// Ends the pause before the next attempt to connect.
        private let wake = DispatchSemaphore(value: 0)
        private static let pauses: ClosedRange<Int> = 1...8
        private static let initialized: Int32 = mosquitto_lib_init()

        init(_ configuration: MQTTConfiguration) throws(FerryError) {
            self.configuration = configuration
            guard Self.initialized == MOSQ_ERR_SUCCESS.rawValue,
                let pointer = mosquitto_new(configuration.clientID, false, nil)
            else { throw FerryError(.mqttFailed, "libmosquitto cannot make a client. Check the memory that is left.") }
            handle = Mutex(Handle(pointer: pointer))
            try Self.prepare(pointer, configuration)
        }

        private static func prepare(_ pointer: OpaquePointer, _ configuration: MQTTConfiguration) throws(FerryError) {
            mosquitto_int_option(pointer, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5)
            mosquitto_int_option(pointer, MOSQ_OPT_TCP_NODELAY, 1)
            mosquitto_threaded_set(pointer, true)
            if let user = configuration.user {
                try require(
                    mosquitto_username_pw_set(pointer, user, configuration.password), "The user cannot be set")
            }
            guard configuration.isSecure else { return }
            if configuration.authoritiesFile == nil { mosquitto_int_option(pointer, MOSQ_OPT_TLS_USE_OS_CERTS, 1) }
            let status = mosquitto_tls_set(
                pointer, configuration.authoritiesFile, nil, configuration.certificateFile, configuration.keyFile, nil)
            guard status == MOSQ_ERR_SUCCESS.rawValue else {
                let files = [configuration.authoritiesFile, configuration.certificateFile, configuration.keyFile]
                throw FerryError(
                    .mqttInsecure,
                    "TLS to \(configuration.publicAddress) cannot be set up (\(words(status))). Check that these files can be "
                        + "read: \(files.compactMap(\.self).joined(separator: ", ")).")
            }
        }

        var isConnected: Bool {
            state.withLock { if case .connected = $0.phase { true } else { false } }
        }

        var connections: UInt64 { state.withLock { $0.connections } }

        // MARK: Connecting

        func connect() async throws(FerryError) {
            let timeout = configuration.timeout
            let result = await withCheckedContinuation { continuation in
                state.withLock { $0.phase = .connecting(continuation) }
                // Names are looked up and the connection is made before it returns.
                DispatchQueue.global().async { [self] in begin() }
                Task { [weak self, configuration] in
                    try? await Task.sleep(for: timeout)
                    self?.connected(
                        .failure(
                            FerryError(
                                .timedOut,
                                "The MQTT broker at \(configuration.publicAddress) has not answered within \(timeout). It may be busy; try again."
                            )))
                }
            }
            try result.get()
            let sweeper = Task { [weak self] in
                while !Task.isCancelled {
                    try? await Task.sleep(for: timeout / 10)
                    self?.sweep()
                }
            }
            state.withLock { $0.sweeper = sweeper }
        }

        private func begin() {
            let status = handle.withLock { handle -> Int32 in
                guard let pointer = handle?.pointer else { return MOSQ_ERR_NO_CONN.rawValue }
                listen(pointer)
                let status = connect(pointer)
                guard status == MOSQ_ERR_SUCCESS.rawValue, let handle else { return status }
                DispatchQueue(label: "ferry.mqtt").async(group: thread) { [self] in loop(handle) }
                return status
            }
            guard status != MOSQ_ERR_SUCCESS.rawValue else { return }
            let what =
                "The MQTT broker at \(configuration.publicAddress) cannot be connected to (\(Self.words(status)))."
            let isTLS = status == MOSQ_ERR_TLS.rawValue || status == MOSQ_ERR_TLS_HANDSHAKE.rawValue
            connected(
                .failure(
                    isTLS
                        ? FerryError(
                            .mqttInsecure, "\(what) Name the file of the authority that signed its certificate.")
                        : FerryError(.mqttNoServer, "\(what) Check that a broker runs there, and the address.")))
        }

        /// Callbacks come on the thread, which keeps the client, and while it is closed.
        private func listen(_ pointer: OpaquePointer) {
            mosquitto_user_data_set(pointer, Unmanaged.passUnretained(self).toOpaque())
            mosquitto_connect_v5_callback_set(pointer) { _, context, reason, _, _ in
                MQTTClient.from(context)?.heardConnection(reason)
            }
            mosquitto_disconnect_v5_callback_set(pointer) { _, context, _, _ in MQTTClient.from(context)?.heardLoss() }
            mosquitto_publish_v5_callback_set(pointer) { _, context, number, reason, _ in
                MQTTClient.from(context)?.heardAnswer(number, reason)
            }
        }

        private func connect(_ pointer: OpaquePointer) -> Int32 {
            mosquitto_connect_bind_v5(pointer, configuration.host, Int32(configuration.port), 15, nil, nil)
        }

        private var isClosed: Bool {
            state.withLock { if case .closed = $0.phase { true } else { false } }
        }

        /// Serves the connection and makes it anew, until it is closed.
        private func loop(_ handle: Handle) {
            var pause = Self.pauses.lowerBound
            while !isClosed {
                guard mosquitto_loop(handle.pointer, 1000, 1) != MOSQ_ERR_SUCCESS.rawValue else {
                    if isConnected { pause = Self.pauses.lowerBound }
                    continue
                }
                heardLoss()
                forget(handle.pointer)
                // Each other one a moment later than the others of a broker that comes back.
                let moment = DispatchTimeInterval.milliseconds(1000 * pause + Int.random(in: 0..<500))
                guard !isClosed, wake.wait(timeout: .now() + moment) == .timedOut else { continue }
                pause = min(2 * pause, Self.pauses.upperBound)
                _ = connect(handle.pointer)
            }
            // A connection that came just now is not wanted any more.
            mosquitto_disconnect(handle.pointer)
            destroy()
        }

        /// Makes libmosquitto forget the messages on their way, which are answered with `unanswered`. It would send them at the beginning
        /// of the next connection, before those that a broker has lost after it had answered for them.
        private func forget(_ pointer: OpaquePointer) {
            let late = handle.withLock { _ -> [Answering] in
                _ = mosquitto_reinitialise(pointer, configuration.clientID, false, nil)
                listen(pointer)
                var trouble: FerryError?
                do throws(FerryError) { try Self.prepare(pointer, configuration) } catch { trouble = error }
                return state.withLock { state in
                    state.trouble = trouble ?? state.trouble
                    state.generation += 1
                    state.inFlight -= state.pending.count
                    let late = state.pending.values.compactMap(\.waiting)
                    state.pending = [:]
                    state.early = [:]
                    return late
                }
            }
            for continuation in late { continuation.resume(returning: .failure(lost)) }
        }

        private var lost: FerryError {
            FerryError(
                .mqttNoServer,
                "The connection to the MQTT broker at \(configuration.publicAddress) was lost. It is tried again.")
        }

        private static func from(_ context: UnsafeMutableRawPointer?) -> MQTTClient? {
            context.map { Unmanaged<MQTTClient>.fromOpaque($0).takeUnretainedValue() }
        }

        /// The first of several ends the wait.
        private func connected(_ result: Result<Void, FerryError>) {
            let waiting = state.withLock { state -> CheckedContinuation<Result<Void, FerryError>, Never>? in
                guard case .connecting(let waiting) = state.phase else { return nil }
                if case .success = result { state.phase = .connected } else { state.phase = .away }
                return waiting
            }
            waiting?.resume(returning: result)
        }

        private func heardConnection(_ reason: Int32) {
            guard reason == 0 else {
                let words = mosquitto_reason_string(reason).map { String(cString: $0) } ?? "reason \(reason)"
                let error = FerryError(
                    .mqttRefused,
                    "The MQTT broker at \(configuration.publicAddress) refuses the connection (\(words)). Check the user and the password."
                )
                state.withLock { $0.trouble = error }
                return connected(.failure(error))
            }
            state.withLock { $0.connections += 1 }
            connected(.success(()))
            state.withLock { state in
                state.trouble = nil
                if case .away = state.phase { state.phase = .connected }
            }
        }

        private func heardLoss() {
            state.withLock { if case .connected = $0.phase { $0.phase = .away } }
        }

        // MARK: Publishing

        /// A message as the broker gets it.
        struct Publication {
            let topic: String
            let bytes: [UInt8]
            let isRetained: Bool
            var properties: [(name: String, value: String)] = []
            /// What it is, for errors: `The record 1/2`.
            let title: String
            /// What the topics begin with that the user must be allowed to write.
            let prefix: String
        }

        /// The outcome of `send`.
        enum Sent {
            /// It was not sent.
            case not(OutletAnswer)
            /// It is on its way, under libmosquitto's number.
            case under(Int32, generation: UInt64, prefix: String)
        }

        func publish(_ message: Publication) async -> OutletAnswer { await answer(to: send(message)) }

        /// Sends a message, after those that were sent before.
        func send(_ message: Publication) -> Sent {
            let generation: UInt64
            switch enter() {
            case .success(let number): generation = number
            case .failure(let refusal): return .not(refusal.answer)
            }
            var properties: OpaquePointer?
            defer { mosquitto_property_free_all(&properties) }
            for (name, value) in message.properties {
                let status = mosquitto_property_add_string_pair(
                    &properties, Int32(MQTT_PROP_USER_PROPERTY.rawValue), name, value)
                guard status == MOSQ_ERR_SUCCESS.rawValue else { return .not(leave(status, message.title)) }
            }
            var number: Int32 = 0
            let made = properties
            let status = handle.withLock { handle -> Int32 in
                guard let pointer = handle?.pointer, state.withLock({ $0.generation == generation }) else {
                    return MOSQ_ERR_NO_CONN.rawValue
                }
                guard let count = Int32(exactly: message.bytes.count) else { return MOSQ_ERR_PAYLOAD_SIZE.rawValue }
                return message.bytes.withUnsafeBytes {
                    mosquitto_publish_v5(
                        pointer, &number, message.topic, count, $0.baseAddress, 1, message.isRetained, made)
                }
            }
            // A message that is queued while the connection goes is forgotten with it.
            guard status == MOSQ_ERR_SUCCESS.rawValue || (status == MOSQ_ERR_NO_CONN.rawValue && number != 0) else {
                return .not(leave(status, message.title))
            }
            return .under(number, generation: generation, prefix: message.prefix)
        }

        /// Waits for the broker's answer.
        func answer(to sent: Sent) async -> OutletAnswer {
            switch sent {
            case .not(let answer): return answer
            case .under(let number, let generation, let prefix):
                switch await reason(of: number, generation) {
                case .success(let reason): return answer(reason, prefix)
                case .failure(let error): return .unanswered(error)
                }
            }
        }

        private func reason(of number: Int32, _ generation: UInt64) async -> Reason {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Reason? in
                    guard state.generation == generation else {
                        state.inFlight -= 1
                        return .failure(lost)
                    }
                    if let reason = state.early.removeValue(forKey: number) {
                        state.inFlight -= 1
                        return .success(reason)
                    }
                    // libmosquitto took it before it was closed, and may have sent it.
                    if case .closed = state.phase { return .failure(Self.closed) }
                    state.pending[number] = .waiting(continuation, until: .now + configuration.timeout)
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        }

        private struct Refusal: Error { let answer: OutletAnswer }

        /// Counts a message for the connection that there is, or says why it cannot be published now.
        private func enter() -> Result<UInt64, Refusal> {
            func refuse(_ answer: OutletAnswer) -> Result<UInt64, Refusal> { .failure(Refusal(answer: answer)) }
            return state.withLock { state in
                switch state.phase {
                case .closed: return refuse(.gone(Self.closed))
                case .connecting, .away:
                    return refuse(
                        .gone(
                            state.trouble
                                ?? FerryError(
                                    .mqttNoServer,
                                    "There is no connection to the MQTT broker at \(configuration.publicAddress). It is made anew."
                                )))
                case .connected:
                    guard state.inFlight < configuration.maximumInFlight else {
                        return refuse(
                            .full(
                                FerryError(
                                    .queueFull,
                                    "\(configuration.maximumInFlight) messages are without the MQTT broker's answer. Publish again when one has ended."
                                )))
                    }
                    state.inFlight += 1
                    return .success(state.generation)
                }
            }
        }

        /// Takes a message back that libmosquitto has not taken.
        private func leave(_ status: Int32, _ title: String) -> OutletAnswer {
            state.withLock { $0.inFlight -= 1 }
            let what = "\(title) cannot be published (\(Self.words(status)))."
            switch mosq_err_t(status) {
            case MOSQ_ERR_OVERSIZE_PACKET, MOSQ_ERR_PAYLOAD_SIZE:
                return .refused(FerryError(.messageTooLarge, "\(what) Raise the broker's max_packet_size."))
            case MOSQ_ERR_INVAL, MOSQ_ERR_MALFORMED_UTF8, MOSQ_ERR_DUPLICATE_PROPERTY, MOSQ_ERR_PROTOCOL:
                return .refused(FerryError(.invalidConfiguration, "\(what) Check its names."))
            case MOSQ_ERR_NOMEM: return .full(FerryError(.mqttFailed, "\(what) It is tried again."))
            default: return .gone(FerryError(.mqttNoServer, "\(what) It is tried again."))
            }
        }

        private func heardAnswer(_ number: Int32, _ reason: Int32) {
            let waiting = state.withLock { state -> Answering? in
                guard let pending = state.pending.removeValue(forKey: number) else {
                    state.early[number] = reason
                    return nil
                }
                state.inFlight -= 1
                guard case .waiting(let continuation, _) = pending else { return nil }
                return continuation
            }
            waiting?.resume(returning: .success(reason))
        }

        /// What a reason code of a PUBACK means (MQTT 5.0, 3.4.2.1).
        private func answer(_ reason: Int32, _ prefix: String) -> OutletAnswer {
            guard reason >= 0x80 else { return .taken(isDuplicate: false) }
            let words = mosquitto_reason_string(reason).map { String(cString: $0) } ?? "reason \(reason)"
            let what = "The MQTT broker at \(configuration.publicAddress) does not take a message (\(words))."
            switch reason {
            case 0x87:
                return .refused(FerryError(.mqttRefused, "\(what) Let the user write below \(prefix)/."))
            case 0x90, 0x95, 0x99: return .refused(FerryError(.mqttFailed, "\(what) The broker's log says more."))
            case 0x97: return .full(FerryError(.mqttFailed, "\(what) Raise the broker's quota."))
            default: return .unanswered(FerryError(.mqttFailed, "\(what) It is tried again."))
            }
        }

        /// Ends the waits whose time is over.
        private func sweep() {
            let now = ContinuousClock.now
            let late = state.withLock { state -> [Answering] in
                var late: [Answering] = []
                for (number, pending) in state.pending {
                    guard case .waiting(let continuation, let end) = pending, now >= end else { continue }
                    state.pending[number] = .abandoned
                    late.append(continuation)
                }
                return late
            }
            let error = FerryError(
                .timedOut,
                "The MQTT broker at \(configuration.publicAddress) has not answered within \(configuration.timeout). It is tried again."
            )
            for continuation in late { continuation.resume(returning: .failure(error)) }
        }

        // MARK: Ending

        private static var closed: FerryError { FerryError(.closed, "The outlet was closed. Open another one.") }

        func close() async {
            let (late, sweeper) = state.withLock { state -> ([Answering], Task<Void, Never>?) in
                state.phase = .closed
                let late = state.pending.values.compactMap(\.waiting)
                state.pending = [:]
                return (late, state.sweeper)
            }
            sweeper?.cancel()
            for continuation in late { continuation.resume(returning: .failure(Self.closed)) }
            let patience = DispatchTime.now() + (configuration.timeout / .seconds(1))
            // Its thread is waited for, unless it is connecting to a host that does not answer.
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async { [self] in
                    wake.signal()
                    handle.withLock { handle in
                        if let handle { mosquitto_disconnect(handle.pointer) }
                    }
                    if thread.wait(timeout: patience) == .success { destroy() }
                    continuation.resume()
                }
            }
        }

        private func destroy() {
            let old = handle.withLock { handle in
                defer { handle = nil }
                return handle
            }
            if let old { mosquitto_destroy(old.pointer) }
        }

        deinit { destroy() }

        private static func words(_ status: Int32) -> String {
            if status == MOSQ_ERR_ERRNO.rawValue { return String(cString: strerror(errno)) }
            return mosquitto_strerror(status).map { String(cString: $0) } ?? "status \(status)"
        }

        private static func require(_ status: Int32, _ what: String) throws(FerryError) {
            guard status == MOSQ_ERR_SUCCESS.rawValue else {
                throw FerryError(.mqttFailed, "\(what) (\(words(status))). Check the configuration.")
            }
        }
    }
#endif
