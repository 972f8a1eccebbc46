import Foundation

/// A value of a stream's properties, of which these have none.
#if canImport(Darwin)
    typealias StreamProperty = Any
#else
    typealias StreamProperty = AnyObject
#endif

/// What a channel's streams have in common: status, delegate and the run loops that they report on.
final class StreamReporter: @unchecked Sendable {
    private struct State {
        var status = Stream.Status.notOpen
        weak var delegate: (any StreamDelegate)?
        var loops: [(loop: RunLoop, mode: RunLoop.Mode)] = []
        /// Events not reported yet, each kind once.
        var due: [Stream.Event] = []
        var isPosted = false
    }
    private let state = Guarded(State())

    var status: Stream.Status { state { $0.status } }
    var delegate: (any StreamDelegate)? {
        get { state { $0.delegate } }
        set { state { $0.delegate = newValue } }
    }

    /// True when the stream was not open before.
    func open() -> Bool {
        state { state in
            guard state.status == .notOpen else { return false }
            state.status = .open
            return true
        }
    }

    /// True when the stream was not closed before.
    func close() -> Bool {
        state { state in
            defer {
                state.status = .closed
                state.due = []
                state.loops = []
            }
            return state.status != .closed
        }
    }

    func schedule(_ loop: RunLoop, _ mode: RunLoop.Mode, _ stream: Stream) {
        state { $0.loops.append((loop, mode)) }
        post(nil, stream)
    }

    func remove(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        state { state in
            state.loops.removeAll { $0.loop === loop && $0.mode == mode }
            // That run loop may never run again.
            state.isPosted = false
        }
    }

    /// Has an event reported, once the stream has a run loop. Before it is open nothing is.
    func post(_ event: Stream.Event?, _ stream: Stream) {
        let target: (loop: RunLoop, mode: RunLoop.Mode)? = state { state in
            guard state.status != .closed, state.status != .notOpen else { return nil }
            if let event, !state.due.contains(event) { state.due.append(event) }
            guard !state.due.isEmpty, !state.isPosted, let target = state.loops.first else { return nil }
            state.isPosted = true
            return target
        }
        guard let target else { return }
        let report = Unchecked { [weak stream] in
            if let stream { self.report(stream) }
        }
        if target.loop === RunLoop.main {
            DispatchQueue.main.async { report.value() }
        } else {
            // A timer, because adding one wakes the run loop.
            target.loop.add(
                Timer(fire: Date(), interval: 0, repeats: false) { _ in report.value() }, forMode: target.mode)
        }
    }

    private func report(_ stream: Stream) {
        let (due, delegate) = state { state in
            defer {
                state.isPosted = false
                state.due = []
            }
            return (state.due, state.delegate)
        }
        for event in due where status != .closed {
            if event == .endEncountered { state { $0.status = .atEnd } }
            if event == .errorOccurred { state { $0.status = .error } }
            delegate?.stream(stream, handle: event)
        }
    }
}

/// The input stream of an L2CAP channel.
final class ChannelInputStream: InputStream {
    var pipe: WeakReference<ChannelPipe>?
    private let reporter = StreamReporter()
    private var channel: ChannelPipe? { pipe?.object }

    func post(_ event: Stream.Event) { reporter.post(event, self) }

    /// Reports the end, once it has come and everything has been read.
    func postEnd() {
        guard let channel, channel.hasEnded else { return }
        post(channel.failure == nil ? .endEncountered : .errorOccurred)
    }

    override func open() {
        guard reporter.open() else { return }
        post(.openCompleted)
        if hasBytesAvailable { post(.hasBytesAvailable) } else { postEnd() }
    }

    override func close() {
        if reporter.close() { channel?.didClose(self) }
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard let channel, reporter.status != .notOpen, reporter.status != .closed else { return -1 }
        let count = channel.read(buffer, len) { reporter.status != .closed }
        if channel.isReadable { post(.hasBytesAvailable) } else { postEnd() }
        return count == 0 && channel.failure != nil ? -1 : count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override var hasBytesAvailable: Bool { channel?.isReadable ?? false }
    override var streamStatus: Stream.Status { reporter.status }
    override var streamError: (any Error)? { channel?.failure }
    override var delegate: (any StreamDelegate)? {
        get { reporter.delegate }
        set { reporter.delegate = newValue }
    }
    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { reporter.schedule(aRunLoop, mode, self) }
    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { reporter.remove(aRunLoop, mode) }
    override func property(forKey key: Stream.PropertyKey) -> StreamProperty? { nil }
    override func setProperty(_ property: StreamProperty?, forKey key: Stream.PropertyKey) -> Bool { false }
}

/// The output stream of an L2CAP channel.
final class ChannelOutputStream: OutputStream {
    var pipe: WeakReference<ChannelPipe>?
    private let reporter = StreamReporter()
    private var channel: ChannelPipe? { pipe?.object }

    #if !canImport(Darwin)
        required init(toMemory: ()) { super.init(toMemory: ()) }
    #endif

    func post(_ event: Stream.Event) { reporter.post(event, self) }

    override func open() {
        guard reporter.open() else { return }
        post(.openCompleted)
        if hasSpaceAvailable { post(.hasSpaceAvailable) } else { channel?.postEnd(self) }
    }

    override func close() {
        if reporter.close() { channel?.didClose(self) }
    }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        guard let channel, reporter.status != .notOpen, reporter.status != .closed else { return -1 }
        let count = channel.write(buffer, len) { reporter.status != .closed }
        if count > 0, channel.isWritable { post(.hasSpaceAvailable) }
        return count
    }

    override var hasSpaceAvailable: Bool { channel?.isWritable ?? false }
    override var streamStatus: Stream.Status { reporter.status }
    override var streamError: (any Error)? { channel?.failure }
    override var delegate: (any StreamDelegate)? {
        get { reporter.delegate }
        set { reporter.delegate = newValue }
    }
    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { reporter.schedule(aRunLoop, mode, self) }
    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { reporter.remove(aRunLoop, mode) }
    override func property(forKey key: Stream.PropertyKey) -> StreamProperty? { nil }
    override func setProperty(_ property: StreamProperty?, forKey key: Stream.PropertyKey) -> Bool { false }
}
