package import Ferry
import Synchronization

/// The check that every link owes its caller: a chunk is neither empty nor larger than the link takes.
///
/// An adapter's answer costs a lock; a caller has just asked for it, so its last answer is remembered and asked for again
/// only when a chunk exceeds it.
package final class ChunkSizeCheck: Sendable {
    private let lastMaximum = Atomic<Int>(0)

    package init() {}

    /// The maximum that was noted last.
    package var latest: Int? {
        let latest = lastMaximum.load(ordering: .relaxed)
        return latest > 0 ? latest : nil
    }

    /// Remembers the link's present maximum, which is at least 1.
    package func note(_ maximum: Int) -> Int {
        let maximum = max(1, maximum)
        lastMaximum.store(maximum, ordering: .relaxed)
        return maximum
    }

    package func check(_ chunk: RawSpan, for link: some Link) throws(FerryError) {
        guard chunk.byteCount > 0 else {
            throw FerryError(.emptyChunk, "A link cannot carry an empty chunk.")
        }
        guard chunk.byteCount > lastMaximum.load(ordering: .relaxed) else { return }
        let maximum = link.maximumChunkSize
        guard chunk.byteCount <= maximum else {
            throw FerryError(
                .chunkTooLarge, "The chunk has \(chunk.byteCount) bytes; the link takes \(maximum) at present.")
        }
    }
}
