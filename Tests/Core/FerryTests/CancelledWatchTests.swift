import Ferry
import Foundation
import Synchronization
import TestSupport
import Testing

/// A task is cancelled with a lock of the runtime's held, which whoever resumes it takes too. Who does that with a lock held that the
/// task's cancellation wants waits for ever, and the cancellation with it.
@Suite(.tags(.core, .channel), .timeLimit(.minutes(5))) struct CancelledWatchTests {
    @Test func aWatcherIsCancelledWhileItIsTold() async throws {
        for _ in 0..<20 {
            let isSending = DispatchSemaphore(value: 0)
            let isCancelling = DispatchSemaphore(value: 0)
            let link = ScriptedLink(sizes: [20]) { (_, _) throws(FerryError) in
                // The channel is in the middle of something, of which it tells those who watch.
                isSending.signal()
                // The cancellation waits for the channel, and nothing tells of that: it has some turns to come so far.
                isCancelling.wait()
                for _ in 0..<200 { sched_yield() }
                throw FerryError(.disconnected, "The link is lost.")
            }
            let channel = try MessageChannel(over: link, codec: TextCodec(), time: VirtualTime())
            let told = Atomic(0)
            let watching = Task { for await _ in channel.statuses { told.add(1, ordering: .relaxed) } }
            try await until("the watcher is told") { told.load(ordering: .relaxed) > 0 }
            let hasCancelled = Atomic(false)
            Thread.detachNewThread {
                isSending.wait()
                isCancelling.signal()
                watching.cancel()
                hasCancelled.store(true, ordering: .relaxed)
            }
            let sending = Task { try? await channel.send("x") }
            try await until("the end of a cancellation that a send waits for") {
                hasCancelled.load(ordering: .relaxed)
            }
            await sending.value
            await watching.value
        }
    }
}
