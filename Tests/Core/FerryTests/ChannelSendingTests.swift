import Ferry
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.core, .channel)) struct ChannelSendingTests {
    @Test func fillsTheQueueThenWaitsForReady() {
        let rig = ChannelRig(queueDepth: 4)
        let id = rig.send(pattern(199))  // with the prefix of 2 bytes: 201 bytes, 11 chunks
        #expect(rig.links.a.waitingChunks == 4)
        #expect(rig.outcome(id) == nil)
        #expect(rig.a.statistics.waitsForReady == 1)
        rig.deliverAll()
        #expect(rig.hasSucceeded(id))
        #expect(rig.a.statistics.chunksSent == 11)
        #expect(rig.a.statistics.bytesSent == 201)
        // Each delivery makes room for one chunk: 7 more chunks, of which the last finds the queue with room.
        #expect(rig.a.statistics.waitsForReady == 7)
        #expect(rig.messages() == [pattern(199)])
    }

    @Test func reportsProgressUpToTheTotal() {
        let rig = ChannelRig(queueDepth: 4)
        let id = rig.send(pattern(199))
        rig.deliverAll()
        let steps = rig.progress(id).map(\.acceptedBytes)
        #expect(steps == steps.sorted() && steps.count >= 2)
        #expect(rig.progress(id).last == SendProgress(acceptedBytes: 199, totalBytes: 199))
    }

    @Test func servesSendersInOrder() {
        let rig = ChannelRig(queueDepth: 1)
        let ids = (0..<20).map { rig.send(pattern(50, seed: $0)) }
        rig.deliverAll()
        #expect(ids.allSatisfy(rig.hasSucceeded))
        #expect(rig.messages() == (0..<20).map { pattern(50, seed: $0) })
    }

    @Test func takesBackAMessageThatHasNotBegun() {
        let rig = ChannelRig(queueDepth: 1)
        let first = rig.send(pattern(100))
        let second = rig.send(pattern(30))
        rig.a.cancel(second)
        #expect(rig.error(second)?.code == .cancelled)
        rig.deliverAll()
        #expect(rig.hasSucceeded(first))
        #expect(rig.messages() == [pattern(100)])
    }

    @Test func finishesAMessageThatHasBegunThoughCancelled() {
        let rig = ChannelRig(queueDepth: 1)
        let id = rig.send(pattern(100))
        rig.a.cancel(id)
        #expect(rig.error(id)?.code == .cancelled)
        #expect(rig.error(id)?.fate == .mayHaveArrived)
        rig.deliverAll()
        #expect(rig.messages() == [pattern(100)])
    }

    @Test func timesOutBeforeTheFirstChunkWithoutATrace() {
        let rig = ChannelRig(queueDepth: 1)
        rig.send(pattern(100))
        let late = rig.send(pattern(30), timeout: .seconds(1))
        rig.time.advance(by: .seconds(1))
        #expect(rig.error(late)?.code == .timedOut)
        rig.deliverAll()
        #expect(rig.messages() == [pattern(100)])
    }

    @Test func timesOutInTheMiddleButFinishesTheMessage() {
        let rig = ChannelRig(queueDepth: 1)
        let id = rig.send(pattern(100), timeout: .seconds(1))
        rig.time.advance(by: .seconds(1))
        #expect(rig.error(id)?.code == .timedOut)
        #expect(rig.error(id)?.message.contains("of 100 bytes") == true)
        rig.deliverAll()
        #expect(rig.messages() == [pattern(100)])
        #expect(rig.a.closeReason == nil)
    }

    @Test func survivesAReadySignalThatNeverComes() {
        let rig = ChannelRig(queueDepth: 4)
        let id = rig.send(pattern(400))
        for _ in 0..<20 where rig.outcome(id) == nil {
            while rig.links.a.deliver(signalsReady: false) {}
            rig.time.advance(by: .milliseconds(15))
        }
        while rig.links.a.deliver() {}
        #expect(rig.hasSucceeded(id))
        #expect(rig.a.statistics.lostReadySignals > 0)
        #expect(rig.messages() == [pattern(400)])
    }

    @Test func survivesAReadySignalThatComesTooEarly() {
        let rig = ChannelRig(queueDepth: 2)
        rig.links.a.signalReadyTooEarly()
        let id = rig.send(pattern(100))
        for _ in 0..<10 { rig.links.a.signalReadyTooEarly() }
        #expect(rig.links.a.waitingChunks == 2)
        #expect(rig.a.statistics.waitsForReady == 1)
        rig.deliverAll()
        #expect(rig.hasSucceeded(id))
    }

    @Test func closesWhenTheLinkTakesNothingForTooLong() {
        let rig = ChannelRig(queueDepth: 1)
        let id = rig.send(pattern(100))
        rig.time.advance(by: .seconds(29))
        #expect(rig.outcome(id) == nil)
        rig.time.advance(by: .seconds(2))
        #expect(rig.error(id)?.code == .timedOut)
        #expect(rig.a.closeReason?.message.contains("outboundStallTimeout") == true)
        #expect(rig.time.nextDeadline == nil, "a closed channel keeps no timer")
    }

    @Test func doesNotCallAnIdleOrSlowChannelStalled() {
        let rig = ChannelRig(queueDepth: 1)
        rig.time.advance(by: .seconds(1000))
        let id = rig.send(pattern(100))
        for _ in 0..<5 {
            rig.time.advance(by: .seconds(25))
            rig.links.a.deliver()
        }
        rig.deliverAll()
        #expect(rig.hasSucceeded(id))
        #expect(rig.a.closeReason == nil)
    }

    @Test func refusesMessagesAndQueuesAboveTheLimits() {
        var limits = Limits()
        limits.maximumMessageSize = 1000
        limits.maximumOutboundBytes = 1500
        let rig = ChannelRig(queueDepth: 1, limits: limits)
        let tooLarge = rig.send(pattern(1001))
        #expect(rig.error(tooLarge)?.code == .messageTooLarge)
        #expect(rig.error(tooLarge)?.message.contains("maximumMessageSize is 1000") == true)
        let first = rig.send(pattern(1000))
        let tooMuch = rig.send(pattern(501))
        #expect(rig.error(tooMuch)?.code == .queueFull)
        let second = rig.send(pattern(500))
        rig.deliverAll()
        #expect(rig.hasSucceeded(first) && rig.hasSucceeded(second))
        #expect(rig.hasSucceeded(rig.send(pattern(10))), "the channel goes on")
    }

    @Test func followsTheChunkSizeInTheMiddleOfAMessage() {
        let rig = ChannelRig(maximumChunkSize: 20, queueDepth: 1)
        let id = rig.send(pattern(1000))
        rig.links.a.deliver()
        rig.links.a.setMaximumChunkSize(182)
        rig.deliverAll()
        #expect(rig.hasSucceeded(id))
        // 20 + 20 bytes with the old size, the other 962 of 1002 in chunks of 182.
        #expect(rig.a.statistics.chunksSent == 2 + 6)
        #expect(rig.messages() == [pattern(1000)])
    }

    @Test func tellsSendersWhyTheChannelEnded() {
        let rig = ChannelRig(queueDepth: 1)
        let begun = rig.send(pattern(100))
        let waiting = rig.send(pattern(100))
        rig.links.a.disconnect()
        #expect(rig.error(begun)?.code == .disconnected)
        #expect(rig.error(waiting)?.message.contains("0 of 100 bytes") == true)
        #expect(rig.error(rig.send(pattern(1)))?.code == .disconnected)
        #expect(rig.time.nextDeadline == nil)
    }
}
