import CoreBluetooth
import Ferry
import FerryBluetooth

/// An L2CAP channel: the framework's two streams, on a thread of their own. The `CBL2CAPChannel` is kept, for it closes the
/// channel when it goes away.
///
/// The streams carry bytes: what was sent at once may arrive in pieces, or together.
final class CoreBluetoothChannel: NSObject, L2CAPChannel, StreamDelegate, @unchecked Sendable {
    let psm: PSM
    let peerID: PeerID
    let peer: PeerIdentity
    /// One write takes no more; the system cuts it into SDUs of its own.
    let maximumChunkSize = 2048

    private struct State {
        var channel: CBL2CAPChannel?
        var receiver: (any LinkReceiver)?
        var unsent: [UInt8] = []
        var owesReady = false
        var isPaused = false
        var isClosing = false
        var end: FerryError?
    }
    private let state: Locked<State>

    init(_ channel: CBL2CAPChannel, psm: PSM, _ peer: PeerIdentity, _ peerID: PeerID) {
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
            let isFirst = state.receiver == nil
            if isFirst { state.receiver = receiver }
            return (isFirst, state.end)
        }
        guard isFirst else { return }
        StreamThread.shared.perform { [self] in
            if let end { return finish(end) }
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
        guard chunk.byteCount > 0 else { throw FerryError(.emptyChunk, "An L2CAP channel carries no empty SDUs.") }
        guard chunk.byteCount <= maximumChunkSize else {
            throw FerryError(
                .chunkTooLarge,
                "\(chunk.byteCount) bytes are above \(maximumChunkSize), the most that is written at once.")
        }
        let isFirst = try state { (state) throws(FerryError) -> Bool? in
            if let end = state.end { throw end }
            if state.isClosing { throw Self.closedHere }
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
        let isFirst = state { state in
            defer { state.isClosing = true }
            return !state.isClosing && state.end == nil
        }
        if isFirst { StreamThread.shared.perform { [self] in leave(tries: 100) } }
    }

    /// Closes once everything is written, or after a second.
    private func leave(tries: Int) {
        write()
        guard state({ !$0.unsent.isEmpty && $0.end == nil }), tries > 0 else { return finish(Self.closedHere) }
        StreamThread.shared.perform(after: 0.01) { [self] in leave(tries: tries - 1) }
    }

    private static let closedHere = FerryError(.closed, "The L2CAP channel was closed by this side.")

    // MARK: On the thread

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        switch eventCode {
        case .hasBytesAvailable: read()
        case .hasSpaceAvailable: write()
        case .endEncountered, .errorOccurred:
            read()
            finish(FerryError(.disconnected, "The L2CAP channel was closed by the peer, or the connection has ended."))
        default: break
        }
    }

    private func read() {
        guard let (input, _) = streams() else { return }
        var buffer = [UInt8](repeating: 0, count: maximumChunkSize)
        while state({ !$0.isPaused && $0.end == nil && $0.receiver != nil }), input.hasBytesAvailable {
            let count = input.read(&buffer, maxLength: buffer.count)
            guard count > 0 else { return }
            let receiver = state { $0.receiver }
            receiver?.linkDidReceive(buffer.span.extracting(0..<count).bytes)
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
            return state.receiver
        }
        receiver?.linkIsReady()
    }

    private func finish(_ reason: FerryError) {
        let (channel, receiver, end) = state { state in
            defer {
                state.channel = nil
                if state.receiver != nil { state.receiver = nil }
                state.unsent = []
            }
            if state.end == nil { state.end = state.isClosing ? Self.closedHere : reason }
            return (state.channel, state.receiver, state.end ?? reason)
        }
        if let channel {
            for case let stream? in [channel.inputStream as Stream?, channel.outputStream as Stream?] {
                stream.delegate = nil
                stream.remove(from: .current, forMode: .default)
                stream.close()
            }
        }
        receiver?.linkDidClose(end)
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
