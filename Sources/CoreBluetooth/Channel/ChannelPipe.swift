import Ferry
import FerryBluetooth
import Foundation

/// What the two streams of a channel share: the bytes that came and the ones that wait to go.
final class ChannelPipe: LinkReceiver, @unchecked Sendable {
    /// Bytes that may wait to be read before the peer is asked to pause.
    static let mostUnread = 65_536

    private let link: any L2CAPChannel
    // Guards everything below, and is waited on by reads and writes that block.
    private let condition = NSCondition()
    private var unread = Data()
    private var unsent: [UInt8] = []
    private var isPaused = false
    private var end: FerryError?
    private var closedStreams: Set<ObjectIdentifier> = []

    let input: ChannelInputStream
    let output: ChannelOutputStream

    init(_ link: any L2CAPChannel) {
        self.link = link
        input = ChannelInputStream(data: Data())
        output = ChannelOutputStream(toMemory: ())
        input.pipe = WeakReference(self)
        output.pipe = WeakReference(self)
    }

    private func locked<Result>(_ body: () -> Result) -> Result {
        condition.lock()
        defer { condition.unlock() }
        return body()
    }

    func close() { link.close() }

    /// A stream was closed; after both the channel is.
    func didClose(_ stream: Stream) {
        let isLast = locked {
            closedStreams.insert(ObjectIdentifier(stream))
            condition.broadcast()
            return closedStreams.count == 2
        }
        if isLast { link.close() }
    }

    // MARK: Reading

    var isReadable: Bool { locked { !unread.isEmpty } }
    var hasEnded: Bool { locked { end != nil && unread.isEmpty } }
    /// Why the channel ended, unless it was closed in good order.
    var failure: FerryError? {
        locked { end.flatMap { [.closed, .disconnected].contains($0.code) ? nil : $0 } }
    }

    /// Waits for at least one byte; 0 at the end.
    func read(_ buffer: UnsafeMutablePointer<UInt8>, _ count: Int, isOpen: () -> Bool) -> Int {
        guard count > 0 else { return 0 }
        let (taken, resumes) = locked {
            while unread.isEmpty, end == nil, isOpen() { condition.wait() }
            let taken = min(count, unread.count)
            unread.copyBytes(to: buffer, count: taken)
            unread = taken == unread.count ? Data() : Data(unread.dropFirst(taken))
            let resumes = isPaused && unread.count <= Self.mostUnread / 4
            if resumes { isPaused = false }
            return (taken, resumes)
        }
        if resumes { link.setReceiving(true) }
        return taken
    }

    func linkDidReceive(_ chunk: RawSpan) {
        let pauses = locked {
            chunk.withUnsafeBytes { unread.append(contentsOf: $0) }
            condition.broadcast()
            guard !isPaused, unread.count >= Self.mostUnread else { return false }
            isPaused = true
            return true
        }
        if pauses { link.setReceiving(false) }
        input.post(.hasBytesAvailable)
    }

    // MARK: Writing

    var isWritable: Bool { locked { unsent.isEmpty && end == nil } }

    /// Waits for space, then takes at most one SDU; -1 when the channel has ended.
    func write(_ bytes: UnsafePointer<UInt8>, _ count: Int, isOpen: () -> Bool) -> Int {
        guard count > 0 else { return 0 }
        return locked {
            while !unsent.isEmpty, end == nil, isOpen() { condition.wait() }
            guard end == nil, unsent.isEmpty else { return -1 }
            let taken = min(count, link.maximumChunkSize)
            unsent = Array(UnsafeBufferPointer(start: bytes, count: taken))
            flush()
            return taken
        }
    }

    /// Offers what waits to the link. Locked.
    private func flush() {
        guard !unsent.isEmpty else { return }
        do throws(FerryError) {
            if try link.trySend(unsent.span.bytes) { unsent = [] }
        } catch {
            // The end is about to be reported.
            unsent = []
        }
    }

    func linkIsReady() {
        let isFree = locked {
            flush()
            if unsent.isEmpty { condition.broadcast() }
            return unsent.isEmpty
        }
        if isFree { output.post(.hasSpaceAvailable) }
    }

    func linkDidClose(_ reason: FerryError) {
        locked {
            end = reason
            condition.broadcast()
        }
        let event: Stream.Event = failure == nil ? .endEncountered : .errorOccurred
        input.post(event)
        output.post(event)
    }
}
