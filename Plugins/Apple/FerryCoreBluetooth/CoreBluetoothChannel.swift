import CoreBluetooth
import Ferry
import FerryBluetooth

/// An L2CAP channel: the framework's two streams, on a thread of their own. The `CBL2CAPChannel` is kept, for it closes the
/// channel when it goes away.
///
/// The streams carry bytes: one chunk may arrive in pieces, and several together.
final class CoreBluetoothChannel: NSObject, L2CAPChannel, StreamDelegate, @unchecked Sendable {
    let psm: PSM
    let peerID: PeerID
    let peer: PeerIdentity
    let role: LinkRole?
    /// One write takes no more; the system cuts it into SDUs itself.
    let maximumChunkSize = 2048

    private struct State {
        var channel: CBL2CAPChannel?
        var life = ChannelLife.open(nil)
        var unsent: [UInt8] = []
        var owesReady = false
        var isPaused = false
    }
    private let state: Locked<State>

    init(_ channel: CBL2CAPChannel, psm: PSM, _ peer: PeerIdentity, _ peerID: PeerID, role: LinkRole) {
        self.role = role
        self.psm = psm
        self.peer = peer
        self.peerID = peerID
        state = Locked(State(channel: channel))
    }

    private func streams() -> (input: InputStream, output: OutputStream)? {
        state { state in state.channel.map { ($0.inputStream, $0.outputStream) } }
    }

    func activate(_ receiver: any LinkReceiver) {
        let (isFirst, end) = state { state in
            let isFirst = state.life.receiver == nil
            return (isFirst, state.life.activate(receiver))
        }
        guard isFirst else { return }
        StreamThread.shared.perform { [self] in
            if let end { return receiver.linkDidClose(end) }
            guard let (input, output) = streams() else { return }
            input.delegate = self
            output.delegate = self
            input.schedule(in: .current, forMode: .default)
            output.schedule(in: .current, forMode: .default)
            input.open()
            output.open()
        }
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let isFirst = try state { (state) throws(FerryError) -> Bool? in
            try state.life.checkSending(chunk.byteCount, maximum: maximumChunkSize)
            // Two chunks ahead keep the stream busy.
            guard state.unsent.count < maximumChunkSize else {
                state.owesReady = true
                return nil
            }
            defer { chunk.withUnsafeBytes { state.unsent.append(contentsOf: $0) } }
            return state.unsent.isEmpty
        }
        if isFirst == true { StreamThread.shared.perform { [self] in write() } }
        return isFirst != nil
    }

    func setReceiving(_ isReceiving: Bool) {
        state { $0.isPaused = !isReceiving }
        if isReceiving { StreamThread.shared.perform { [self] in read() } }
    }

    func close() {
        if state({ $0.life.close() }) { StreamThread.shared.perform { [self] in leave(nil) } }
    }

    /// Closes once everything is written, or has had its time.
    private func leave(_ begun: ChannelDrain?) {
        write()
        let (now, waiting) = (SystemTime().now, state { $0.life.end == nil ? $0.unsent.count : 0 })
        var drain = begun ?? ChannelDrain(waiting, at: now)
        guard drain.hasTime(for: waiting, at: now) else { return finish(.channelClosedHere) }
        StreamThread.shared.perform(after: 0.01) { [self, drain] in leave(drain) }
    }

    // MARK: On the thread

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        switch eventCode {
        case .hasBytesAvailable: read()
        case .hasSpaceAvailable: write()
        case .endEncountered, .errorOccurred:
            read()
            finish(.channelClosedByPeer)
        default: break
        }
    }

    private func read() {
        guard let (input, _) = streams() else { return }
        var buffer = [UInt8](repeating: 0, count: maximumChunkSize)
        while let receiver = state({ $0.isPaused ? nil : $0.life.receiver }), input.hasBytesAvailable {
            let count = input.read(&buffer, maxLength: buffer.count)
            guard count > 0 else { return }
            receiver.linkDidReceive(buffer.span.extracting(0..<count).bytes)
        }
    }

    private func write() {
        guard let (_, output) = streams() else { return }
        while output.hasSpaceAvailable {
            let bytes = state { $0.unsent }
            guard !bytes.isEmpty else { break }
            let count = output.write(bytes, maxLength: bytes.count)
            guard count > 0 else { break }
            state { $0.unsent.removeFirst(count) }
        }
        let receiver = state { state -> (any LinkReceiver)? in
            guard state.owesReady, state.unsent.count < maximumChunkSize else { return nil }
            state.owesReady = false
            return state.life.receiver
        }
        receiver?.linkIsReady()
    }

    private func finish(_ reason: FerryError) {
        let (channel, told) = state { state in
            defer {
                state.channel = nil
                state.unsent = []
            }
            return (state.channel, state.life.end(reason))
        }
        if let channel {
            for case let stream? in [channel.inputStream as Stream?, channel.outputStream as Stream?] {
                stream.delegate = nil
                stream.remove(from: .current, forMode: .default)
                stream.close()
            }
        }
        if let told { told.receiver.linkDidClose(told.reason) }
    }
}

/// The thread on whose run loop all channels' streams report, as each must on one.
final class StreamThread: Sendable {
    static let shared = StreamThread()

    private let loop = Locked<RunLoop?>(nil)
    private let started = DispatchSemaphore(value: 0)

    private init() {
        let thread = Thread { [loop, started] in
            // A run loop without anything to wait for returns at once.
            let keepAlive = Timer(timeInterval: 3600, repeats: true) { _ in }
            RunLoop.current.add(keepAlive, forMode: .default)
            loop { $0 = .current }
            started.signal()
            while true { _ = RunLoop.current.run(mode: .default, before: .distantFuture) }
        }
        thread.name = "FerryCoreBluetooth streams"
        thread.start()
    }

    private var ready: RunLoop? {
        if let loop = loop({ $0 }) { return loop }
        started.wait()
        started.signal()
        return loop { $0 }
    }

    /// Runs work on the thread: by a timer, for adding one wakes the run loop.
    func perform(after seconds: Double = 0, _ work: @escaping () -> Void) {
        let work = Unchecked(work)
        let timer = Timer(fire: Date(timeIntervalSinceNow: seconds), interval: 0, repeats: false) { _ in work.value() }
        ready?.add(timer, forMode: .default)
    }
}
