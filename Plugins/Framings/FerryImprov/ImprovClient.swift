public import Ferry
import Synchronization

/// A client of a device that is to come into a wireless network.
///
///     let link = try await GATTTransport(adapter: adapter, configuration: .improv()).connect(timeout: .seconds(10))
///     let device = try await ImprovClient(over: link)
///     try await device.authorized(within: .seconds(60))
///     print(try await device.provision(ssid: "home", password: "secret"))
///
/// There is one request at a time. The link is closed when one ends without its answer (by its timeout, or as its task is cancelled): the late
/// answer would be taken for the next one's. When the last reference goes, the link is closed.
public final class ImprovClient: Sendable {
    /// What the client knows.
    private struct State {
        var device: ImprovState?
        var capabilities: ImprovCapabilities?
        /// Who is told of the device's state; nil once the link has ended.
        var watchers: [UInt64: AsyncStream<ImprovState>.Continuation]? = [:]
        var nextWatcher: UInt64 = 0
    }

    private enum Answer: Sendable {
        case result(ImprovPacket)
        case error(UInt8)
    }

    private let channel: MessageChannel<[UInt8], [UInt8]>
    private let time: any TimeSource
    /// How long a request waits for its answer.
    public let timeout: Duration
    /// What the device can do.
    public var capabilities: ImprovCapabilities { known.withLock { $0.capabilities ?? [] } }
    /// The device's latest state.
    public var state: ImprovState { known.withLock { $0.device ?? .authorizationRequired } }
    private let known = Mutex(State())
    private let requests: LoneRequests<Answer>

    /// Opens a client over a link that it alone uses, activates the link, and waits until the device's state is known.
    ///
    /// - Parameters:
    ///   - link: the link to the device, over GATT with `GATTConfiguration.improv(state:capabilities:)`.
    ///   - timeout: how long a request waits for its answer. 60 s, since a device may take half a minute to connect to a network.
    ///   - time: the clock for timeouts.
    /// - Throws: why the link has ended, or `timedOut`.
    public init(over link: any Link, timeout: Duration = .seconds(60), time: any TimeSource = SystemTime())
        async throws(FerryError)
    {
        self.timeout = timeout
        self.time = time
        channel = try MessageChannel(over: link, codec: BytesCodec(), framing: ImprovFraming(), time: time)
        requests = LoneRequests(over: channel, time: time)
        let (beginning, source) = AsyncStream<Never>.makeStream()
        time.startTask { [weak self, channel] in
            for await case .success(let message) in channel.results {
                if self?.take(message) == true { source.finish() }
            }
            self?.ended()
            source.finish()
        }
        let deadline = time.schedule(at: time.now + timeout) { source.finish() }
        defer { deadline.cancel() }
        for await _ in beginning {}
        guard known.withLock({ $0.capabilities }) != nil else {
            let reason = channel.closeReason
            channel.close()
            throw reason
                ?? FerryError(
                    Task.isCancelled ? .cancelled : .timedOut,
                    "The device has not told its state within \(timeout). Connect again.")
        }
    }

    deinit { channel.close() }

    /// Why the link has ended, or nil.
    public var closeReason: FerryError? { channel.closeReason }
    /// Closes the link. A request that waits fails.
    public func close() { channel.close() }

    /// The device's state from now on, the present one first. Ends with the link. The latest is kept for a reader that is slow.
    public var states: AsyncStream<ImprovState> { watch().states }

    private func watch() -> (states: AsyncStream<ImprovState>, source: AsyncStream<ImprovState>.Continuation) {
        let (states, source) = AsyncStream<ImprovState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = known.withLock { known -> UInt64? in
            if let state = known.device { source.yield(state) }
            guard known.watchers != nil else { return nil }
            known.nextWatcher += 1
            known.watchers?[known.nextWatcher] = source
            return known.nextWatcher
        }
        guard let number else {
            source.finish()
            return (states, source)
        }
        source.onTermination = { [weak self] _ in self?.known.withLock { _ = $0.watchers?.removeValue(forKey: number) }
        }
        return (states, source)
    }

    /// Waits until the device takes settings, for which a person may have to press its button.
    ///
    /// - Throws: `timedOut`, `cancelled`, or why the link has ended.
    public func authorized(within limit: Duration) async throws(FerryError) {
        let (states, source) = watch()
        let deadline = time.schedule(at: time.now + limit) { source.finish() }
        defer { deadline.cancel() }
        for await state in states where state != .authorizationRequired { return }
        if let reason = closeReason { throw reason }
        throw FerryError(
            Task.isCancelled ? .cancelled : .timedOut,
            "The device wants to be authorized and was not within \(limit). Press its button, or look into its manual.")
    }

    // MARK: Requests

    /// Has the device show itself, such as by blinking. It does not answer.
    ///
    /// - Throws: `timedOut`, or why the link has ended.
    public func identify() async throws(FerryError) {
        try await channel.send([0] + (try ImprovPacket(.identify).bytes()), timeout: timeout)
    }

    /// What the device is.
    ///
    /// - Throws: as ``ask(_:)``; `decodingFailed` for an answer of fewer than four strings.
    public func deviceInfo() async throws(FerryError) -> ImprovDevice {
        let text = try await ask(ImprovPacket(.deviceInfo)).text
        guard text.count >= 4 else {
            throw FerryError(
                .decodingFailed,
                "The device answered with \(text.count) strings where 4 were due: firmware, version, hardware, name.")
        }
        return ImprovDevice(firmware: text[0], version: text[1], hardware: text[2], name: text[3])
    }

    /// The networks that the device hears.
    ///
    /// - Throws: as ``ask(_:)``.
    public func scan() async throws(FerryError) -> [ImprovNetwork] {
        try await ask(ImprovPacket(.scan), until: { $0.strings.isEmpty }).dropLast().map { result in
            let text = result.text
            return ImprovNetwork(
                name: text[0], rssi: text.count > 1 ? Int(text[1]) : nil, isProtected: text.count < 3 || text[2] != "NO"
            )
        }
    }

    /// The device's name in the network, after it has been set where one is given.
    ///
    /// - Throws: as ``ask(_:)``; `encodingFailed` for a name that is too long.
    public func hostname(_ name: String? = nil) async throws(FerryError) -> String {
        try await ask(ImprovPacket(.hostname, text: name.map { [$0] } ?? [])).text.first ?? ""
    }

    /// Has the device connect to a network.
    ///
    /// - Returns: addresses where the device can be reached then; often one, of a page.
    /// - Throws: as ``ask(_:)``; `encodingFailed` for a name and password that are too long together.
    public func provision(ssid: String, password: String) async throws(FerryError) -> [String] {
        try await ask(ImprovPacket(.wifiSettings, text: [ssid, password])).text
    }

    /// Sends a command and waits for its result.
    ///
    /// - Throws: `improv.refused` with the device's number; `improv.busy` while another request waits; `encodingFailed`, `timedOut`,
    ///   `cancelled`, or why the link has ended.
    public func ask(_ command: ImprovPacket) async throws(FerryError) -> ImprovPacket {
        let results = try await ask(command, until: { _ in true })
        return results[results.count - 1]
    }

    /// At least one result, of which the last is the first that is an end.
    private func ask(
        _ command: ImprovPacket, until isEnd: (ImprovPacket) -> Bool
    ) async throws(FerryError) -> [ImprovPacket] {
        var results: [ImprovPacket] = []
        return try await requests.ask(
            [0] + (try command.bytes()), within: timeout, most: Self.maximumResults,
            busy: FerryError(
                .improvBusy, "Another request waits for its answer. Ask when it has ended.", fate: .nothingSent)
        ) { (answer) throws(FerryError) in
            switch answer {
            case .error(let number): throw .improvRefused(number, command.command)
            case .result(let result) where result.command != command.command: return nil
            case .result(let result):
                results.append(result)
                guard !isEnd(result) else { return results }
                guard results.count < Self.maximumResults else {
                    channel.close()
                    throw FerryError(
                        .misbehavingPeer, "The device sent \(results.count) results and no end of them. Connect again.",
                        fate: .mayHaveArrived)
                }
                return nil
            }
        }
    }

    /// The most results of one command.
    private static let maximumResults = 256

    // MARK: What arrives

    /// Returns true once the device has told what it can do, which is the last of its notes when a link begins.
    private func take(_ message: [UInt8]) -> Bool {
        guard let kind = message.first.flatMap(ImprovFraming.Kind.init), message.count > 1 else { return false }
        switch kind {
        case .packet:
            guard let packet = try? ImprovPacket(Array(message.dropFirst())) else { return false }
            requests.take(.result(packet))
        case .state:
            let state = ImprovState(rawValue: message[1])
            let watchers = known.withLock { known in
                known.device = state
                return Array((known.watchers ?? [:]).values)
            }
            for watcher in watchers { watcher.yield(state) }
        case .error: if message[1] != 0 { requests.take(.error(message[1])) }
        case .capabilities:
            known.withLock { $0.capabilities = ImprovCapabilities(rawValue: message[1]) }
            return true
        }
        return false
    }

    private func ended() {
        requests.end()
        let watchers = known.withLock { known in
            defer { known.watchers = nil }
            return Array((known.watchers ?? [:]).values)
        }
        for watcher in watchers { watcher.finish() }
    }
}

/// What a device is, in its maker's words.
public struct ImprovDevice: Sendable, Hashable {
    /// The firmware's name.
    public var firmware: String
    /// The firmware's version.
    public var version: String
    /// The chip or board.
    public var hardware: String
    /// The device's name.
    public var name: String

    /// Describes a device.
    public init(firmware: String, version: String, hardware: String, name: String) {
        self.firmware = firmware
        self.version = version
        self.hardware = hardware
        self.name = name
    }
}

/// A network that a device hears.
public struct ImprovNetwork: Sendable, Hashable {
    /// Its name (SSID).
    public var name: String
    /// The signal's strength in dBm; nil where the device does not say it.
    public var rssi: Int?
    /// Whether it wants a password.
    public var isProtected: Bool

    /// Describes a network.
    public init(name: String, rssi: Int?, isProtected: Bool) {
        self.name = name
        self.rssi = rssi
        self.isProtected = isProtected
    }
}

extension FerryError.Code {
    /// The device answered with an error; the message names it.
    public static let improvRefused = FerryError.Code("improv.refused")
    /// Another request waits for its answer.
    public static let improvBusy = FerryError.Code("improv.busy")
}

extension FerryError {
    static func improvRefused(_ number: UInt8, _ command: ImprovPacket.Command) -> FerryError {
        let known: [UInt8: String] = [
            1: "the packet was wrong", 2: "it does not know the command",
            3: "it cannot connect to the network; check name and password",
            4: "it is not authorized; press its button first", 5: "the host name is wrong",
        ]
        return FerryError(
            .improvRefused,
            "The device answered command \(command.rawValue) with error \(number): \(known[number] ?? "unknown here").",
            fate: .mayHaveArrived)
    }
}
