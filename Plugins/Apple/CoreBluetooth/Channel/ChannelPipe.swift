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
    private var unread: [UInt8] = []
    /// How many of its bytes have been read.
    private var taken = 0
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

    var isReadable: Bool { locked { unreadCount > 0 } }
    var hasEnded: Bool { locked { end != nil && unreadCount == 0 } }
    private var unreadCount: Int { unread.count - taken }
    /// Why the channel ended, unless it was closed in good order.
    var failure: FerryError? {
        locked { end.flatMap { [.closed, .disconnected].contains($0.code) ? nil : $0 } }
    }

    /// Waits for at least one byte; 0 at the end.
    func read(_ buffer: UnsafeMutablePointer<UInt8>, _ count: Int, isOpen: () -> Bool) -> Int {
        guard count > 0 else { return 0 }
        return locked {
            while unreadCount == 0, end == nil, isOpen() { condition.wait() }
            let count = min(count, unreadCount)
            unread.withUnsafeBytes { unread in
                UnsafeMutableRawBufferPointer(start: buffer, count: count)
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: unread[taken..<taken + count]))
            }
            taken += count
            // Moved together once for every half, so that each byte is moved about once.
            if taken >= unread.count / 2 {
                unread.removeFirst(taken)
                taken = 0
            }
            if isPaused, unreadCount <= Self.mostUnread / 4 {
                isPaused = false
                link.setReceiving(true)
            }
            return count
        }
    }

    func linkDidReceive(_ chunk: RawSpan) {
        locked {
            chunk.withUnsafeBytes { unread.append(contentsOf: $0) }
            condition.broadcast()
            // Under the lock, so that pausing and going on cannot change places.
            guard !isPaused, unreadCount >= Self.mostUnread else { return }
            isPaused = true
            link.setReceiving(false)
        }
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

    /// Offers the pending bytes to the link. Locked.
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
        input.postEnd()
        postEnd(output)
    }

    /// Reports the end, if it has come, on the output stream.
    func postEnd(_ output: ChannelOutputStream) {
        guard locked({ end != nil }) else { return }
        output.post(failure == nil ? .endEncountered : .errorOccurred)
    }
}
