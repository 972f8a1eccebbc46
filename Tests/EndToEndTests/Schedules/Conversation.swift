import Ferry
import FerrySequenced
import FerryTesting
import Synchronization

/// What an app does with one link of a ``Schedule``: reads all that comes, sends a few messages, gives some of them up, and
/// closes in one way or another.
final class Conversation: Sendable {
    private typealias Channel = MessageChannel<[UInt8], [UInt8]>

    private let station: Station
    private let partner: Station
    private let ledger: ScheduleLedger
    private let time: VirtualTime
    private let dice: Dice
    private let isCalm: Bool
    private let channelNumber: Int

    init(
        _ station: Station, _ partner: Station, _ ledger: ScheduleLedger, _ time: VirtualTime, _ dice: Dice,
        isCalm: Bool
    ) {
        self.station = station
        self.partner = partner
        self.ledger = ledger
        self.time = time
        self.dice = dice
        self.isCalm = isCalm
        channelNumber = ledger.openChannel()
    }

    func run(over link: any Link, _ framing: any Framing, _ limits: Limits) async {
        let channel: Channel
        do {
            channel = try makeChannel(link, framing, limits)
        } catch {
            return ledger.complain("no channel: \(error)")
        }
        let name = "\(station)'s channel \(channelNumber) with \(partner)"
        ledger.note("\(name) opens")
        let reading = Task { await self.read(channel) }
        await send(on: channel)
        await pause(upTo: .seconds(1))
        await end(channel)
        await reading.value
        ledger.note("\(name) is over: \(channel.closeReason?.message ?? "?")")
        ledger.tally { tally in
            tally.channels += 1
            tally.resumptions += channel.status.resumptions
            if partner == .stranger { tally.strangers += 1 }
        }
    }

    private func makeChannel(_ link: any Link, _ framing: some Framing, _ limits: Limits) throws -> Channel {
        try MessageChannel(over: link, codec: BytesCodec(), framing: framing, limits: limits, time: time)
    }

    private func pause(upTo longest: Duration) async {
        try? await time.sleep(for: dice.duration(upTo: longest))
    }

    /// Reads to the end, now and then slowly, now and then by another task.
    private func read(_ channel: Channel) async {
        let isSlow = !isCalm && dice.chance(20)
        while true {
            let reading = Task { () async -> Bool in
                for await result in channel.results {
                    if case .success(let payload) = result {
                        ledger.receive(payload, at: station, on: channelNumber)
                    }
                    if isSlow { await pause(upTo: .milliseconds(300)) }
                }
                return !Task.isCancelled
            }
            if !isCalm, dice.chance(10) {
                await pause(upTo: .seconds(2))
                reading.cancel()
            }
            if await reading.value { return }
        }
    }

    private func send(on channel: Channel) async {
        let sends = (0..<dice.below(5)).map { _ in Task { await self.sendOne(on: channel) } }
        for task in sends where !isCalm && dice.chance(15) {
            await pause(upTo: .milliseconds(200))
            task.cancel()
        }
        for task in sends { await task.value }
    }

    private func sendOne(on channel: Channel) async {
        await pause(upTo: .milliseconds(500))
        let size = dice.chance(60) ? dice.below(40) : dice.chance(80) ? dice.below(400) : dice.below(2500)
        let message = ledger.write(size, on: channelNumber, from: station, to: partner)
        let options = SendOptions(priority: SendOptions.Priority(rawValue: UInt8(dice.below(4))))
        let timeout = isCalm || dice.chance(70) ? nil : dice.duration(upTo: .seconds(2))
        do {
            try await channel.send(message.payload, options: options, timeout: timeout)
            ledger.settle(message, .success(()))
        } catch {
            ledger.settle(message, .failure(error))
        }
    }

    private func end(_ channel: Channel) async {
        guard !isCalm else {
            // The one that connected closes; what it has been sent meanwhile has to have arrived.
            if station.listens { _ = await channel.closed } else { await endCalmly(channel) }
            return
        }
        switch dice.below(4) {
        case 0: channel.close()
        case 1: try? await channel.closeAfterSending(timeout: .seconds(5))
        case 2 where station.listens:
            // Until the peer ends it.
            _ = await channel.closed
        default:
            await pause(upTo: .seconds(3))
            channel.close()
        }
    }

    private func endCalmly(_ channel: Channel) async {
        try? await time.sleep(for: .seconds(3))
        try? await channel.closeAfterSending(timeout: .seconds(5))
    }
}
