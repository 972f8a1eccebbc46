import Ferry
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.core, .channel)) struct ChannelReceivingTests {
    @Test func reportsAMessageCutShort() {
        let rig = ChannelRig(queueDepth: 2)
        rig.send(pattern(10))
        rig.deliverAll()
        rig.send(pattern(100))
        rig.links.a.deliver()
        rig.links.a.disconnect()
        let deliveries = rig.readAll()
        guard deliveries.count == 3, case .message(pattern(10)) = deliveries[0],
            case .failure(let error) = deliveries[1], case .end = deliveries[2]
        else {
            Issue.record("unexpected: \(deliveries)")
            return
        }
        #expect(error.code == .truncatedMessage)
        #expect((error.cause as? FerryError)?.code == .disconnected)
    }

    @Test func endsPlainlyWhenThePeerLeavesBetweenMessages() {
        let rig = ChannelRig()
        rig.send(pattern(10))
        rig.deliverAll()
        rig.a.finish(FerryError(.closed, "done"))
        let deliveries = rig.readAll()
        guard deliveries.count == 2, case .message = deliveries[0], case .end = deliveries[1] else {
            Issue.record("unexpected: \(deliveries)")
            return
        }
        #expect(rig.b.closeReason?.code == .disconnected)
        #expect(rig.a.closeReason?.code == .closed)
    }

    @Test func flushesWhatTheLinkHasTakenBeforeClosing() {
        let rig = ChannelRig(queueDepth: 4)
        let id = rig.send(pattern(60))
        #expect(rig.hasSucceeded(id))
        rig.a.finish(FerryError(.closed, "done"))
        #expect(rig.messages() == [pattern(60)])
    }

    @Test func asksThePeerToPauseAtHalfTheLimitAndToGoOn() {
        var limits = Limits()
        limits.maximumInboundBytes = 1000
        let rig = ChannelRig(maximumChunkSize: 500, queueDepth: 64, receiverLimits: limits)
        for _ in 0..<20 { rig.send(pattern(100)) }
        rig.deliverAll()
        #expect(!rig.links.b.isReceiving)
        #expect(rig.b.statistics.messagesReceived == 6, "the first message above half of the limit")
        guard case .message? = rig.b.take() else {
            Issue.record("nothing to read")
            return
        }
        #expect(rig.links.b.isReceiving)
        var count = 1
        while true {
            rig.deliverAll()
            let messages = rig.messages()
            guard !messages.isEmpty else { break }
            count += messages.count
        }
        #expect(count == 20)
    }

    @Test func closesWhenAPeerThatCannotBeStoppedSendsTooMuch() {
        var limits = Limits()
        limits.maximumInboundBytes = 1000
        let rig = ChannelRig(limits: limits)
        var message: [UInt8] = [100]  // length prefix
        message += pattern(100)
        for _ in 0..<11 { rig.b.linkDidReceive(message.span.bytes) }
        #expect(rig.b.closeReason?.code == .queueFull)
        #expect(rig.b.closeReason?.message.contains("maximumInboundBytes is 1000") == true)
        #expect(rig.messages().count == 11, "what had arrived can still be read")
    }

    @Test func boundsTheNumberOfEmptyMessages() {
        var limits = Limits()
        limits.maximumInboundMessages = 100
        let rig = ChannelRig(limits: limits)
        let empties = [UInt8](repeating: 0, count: 20)
        for _ in 0..<6 { rig.b.linkDidReceive(empties.span.bytes) }
        #expect(rig.b.closeReason?.code == .queueFull)
    }

    @Test func closesWhenTheSidesAreOutOfStep() {
        let rig = ChannelRig()
        let overlong: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]
        rig.b.linkDidReceive(overlong.span.bytes)
        #expect(rig.b.closeReason?.code == .malformedStream)
        #expect(rig.a.closeReason?.code == .disconnected, "the link is closed too")
    }

    @Test func closesWhenAMessageStopsInTheMiddle() {
        let rig = ChannelRig(queueDepth: 2)
        rig.send(pattern(100))
        rig.links.a.deliver()
        rig.time.advance(by: .seconds(31))  // the sender's own patience ends first
        #expect(rig.a.closeReason?.code == .timedOut)

        let other = ChannelRig()
        other.b.linkDidReceive(([50] + pattern(19)).span.bytes)
        other.time.advance(by: .seconds(59))
        #expect(other.b.closeReason == nil)
        other.b.linkDidReceive(pattern(20).span.bytes)
        other.time.advance(by: .seconds(59))
        #expect(other.b.closeReason == nil, "each chunk renews the patience")
        other.time.advance(by: .seconds(2))
        #expect(other.b.closeReason?.message.contains("inboundStallTimeout") == true)
    }
}
