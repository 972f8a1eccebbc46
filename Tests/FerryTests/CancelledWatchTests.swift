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
            let link = ScriptedLink(sizes: [20]) { (_, _) throws(FerryError) in
                // The channel is in the middle of something, of which it tells those who watch.
                isSending.signal()
                usleep(20_000)
                throw FerryError(.disconnected, "The link is lost.")
            }
            let channel = try MessageChannel(over: link, codec: TextCodec(), time: VirtualTime())
            let told = Atomic(0)
            let watching = Task { for await _ in channel.statuses { told.add(1, ordering: .relaxed) } }
            #expect(await eventually { told.load(ordering: .relaxed) > 0 })
            let hasCancelled = Atomic(false)
            Thread.detachNewThread {
                isSending.wait()
                watching.cancel()
                hasCancelled.store(true, ordering: .relaxed)
            }
            let sending = Task { try? await channel.send("x") }
            try #require(await eventually { hasCancelled.load(ordering: .relaxed) }, "the two wait for each other")
            await sending.value
            await watching.value
        }
    }
}
