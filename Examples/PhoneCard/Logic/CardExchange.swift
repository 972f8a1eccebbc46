public import Ferry
public import FerryBluetooth
import FerryJSON
import Synchronization

/// A ``Room`` on a Bluetooth adapter: both roles at once.
public final class CardExchange: Sendable {
    private let adapter: any BluetoothAdapter
    private let id: UInt64
    private let time: any TimeSource
    private let onChange: @Sendable ([Person]) -> Void
    private let state: Mutex<State>
    private let events: AsyncStream<Room.Event>
    private let report: AsyncStream<Room.Event>.Continuation

    private struct State {
        var room: Room
        var timer: ScheduledTimer?
        var outboxes: [Room.LinkID: AsyncStream<CardMessage>.Continuation] = [:]
        var links = 0
    }

    /// The most bytes of a message: a card's five fields, each of whose bytes JSON may write as six.
    private static let maximumMessageSize = 16 << 10

    /// An exchange; nothing happens before ``run()``.
    ///
    /// - Parameters:
    ///   - adapter: the phone's Bluetooth.
    ///   - card: this phone's card.
    ///   - id: a number of this session.
    ///   - time: the clock.
    ///   - onChange: called with everybody nearby whenever something changes, one call after the other.
    public init(
        adapter: any BluetoothAdapter, card: ContactCard, id: UInt64 = .random(in: 1 ... .max),
        time: any TimeSource = SystemTime(), onChange: @escaping @Sendable ([Person]) -> Void
    ) {
        self.adapter = adapter
        self.id = id
        self.time = time
        self.onChange = onChange
        state = Mutex(State(room: Room(id: id, card: card)))
        (events, report) = AsyncStream.makeStream()
    }

    /// Everybody who was met.
    public var people: [Person] { state.withLock { $0.room.people } }

    /// The person says that both phones show the same code, and gives the card.
    public func accept(_ person: Person.ID) { report.yield(.accepted(person)) }

    /// The person does not want to exchange cards.
    public func decline(_ person: Person.ID) { report.yield(.declined(person)) }

    private var layout: GATTConfiguration {
        GATTConfiguration(
            service: BluetoothUUID(0x5A1D_0001_7C3B_4D3E_9A52_6E0C_3F1B_8D20 as UInt128),
            characteristic: BluetoothUUID(0x5A1D_0002_7C3B_4D3E_9A52_6E0C_3F1B_8D20 as UInt128))
    }

    /// Offers the service and looks for others until the task is cancelled.
    ///
    /// - Throws: `FerryError` with what the person has to do, such as to switch Bluetooth on.
    public func run() async throws(FerryError) {
        var offered = layout
        offered.localName = Greeting.localName(id)
        let listener = try await GATTTransport(adapter: adapter, configuration: offered, time: time).listen()
        defer { listener.close() }
        let ears = Ears(report)
        let role = adapter.openCentral(ears)
        defer { role.close() }
        await withDiscardingTaskGroup { group in
            // A scan does not outlive a loss of power; while there is none it is refused.
            group.addTask { [layout] in
                for await _ in ears.poweredOn { try? role.startScan(ScanRequest(services: [layout.service])) }
            }
            group.addTask { [self] in for await link in listener.links { begin(link, .peripheral) } }
            for await event in events { take(event, &group) }
            group.cancelAll()
        }
        let outboxes = state.withLock { state in
            state.timer?.cancel()
            defer { state.outboxes = [:] }
            return state.outboxes
        }
        for outbox in outboxes.values { outbox.finish() }
    }

    private func take(_ event: Room.Event, _ group: inout DiscardingTaskGroup) {
        let (effects, people) = state.withLock { state in
            let before = state.room.people
            let effects = state.room.take(event, at: time.now)
            state.timer?.cancel()
            state.timer = state.room.nextDeadline.map { deadline in
                time.schedule(at: deadline) { [report] in report.yield(.woken) }
            }
            return (effects, state.room.people == before ? nil : state.room.people)
        }
        for effect in effects {
            switch effect {
            case .connect(let peer): group.addTask { [self] in await connect(to: peer) }
            case .send(let message, let link): _ = state.withLock { $0.outboxes[link] }?.yield(message)
            case .close(let link): state.withLock { $0.outboxes.removeValue(forKey: link) }?.finish()
            }
        }
        if case .opened(let number, _) = event, let talk = pending.withLock({ $0.removeValue(forKey: number) }) {
            group.addTask { [self] in await carry(talk.link, number, talk.outbox) }
        }
        if let people { onChange(people) }
    }

    // MARK: Links

    private struct Pending {
        let link: any Link
        let outbox: AsyncStream<CardMessage>
    }

    /// Links whose beginning the room has not seen yet.
    private let pending = Mutex<[Room.LinkID: Pending]>([:])

    private func begin(_ link: any Link, _ role: Room.Role) {
        let (messages, outbox) = AsyncStream<CardMessage>.makeStream()
        let number = state.withLock { state in
            state.links += 1
            state.outboxes[state.links] = outbox
            return state.links
        }
        pending.withLock { $0[number] = Pending(link: link, outbox: messages) }
        report.yield(.opened(number, role))
    }

    private func connect(to peer: PeerIdentity) async {
        do {
            let transport = GATTTransport(adapter: adapter, configuration: layout, time: time)
            begin(try await transport.connect(to: peer, timeout: .seconds(10)), .central(peer))
        } catch {
            report.yield(.failed(peer))
        }
    }

    /// Carries messages both ways until the link ends, or its outbox and with it this side's part.
    private func carry(_ link: any Link, _ number: Room.LinkID, _ outbox: AsyncStream<CardMessage>) async {
        var limits = Limits()
        limits.maximumMessageSize = Self.maximumMessageSize
        limits.maximumInboundMessages = 16
        do {
            let channel = try MessageChannel(over: link, codec: JSONCodec<CardMessage>(), limits: limits, time: time)
            await withDiscardingTaskGroup { group in
                group.addTask { [report] in
                    // A message that cannot be read ends the conversation.
                    do {
                        for try await message in channel.messages { report.yield(.received(message, on: number)) }
                    } catch {}
                    channel.close()
                }
                await withTaskCancellationHandler {
                    for await message in outbox {
                        do { try await channel.send(message, timeout: .seconds(30)) } catch { break }
                    }
                } onCancel: {
                    channel.close()
                }
                try? await channel.closeAfterSending(timeout: .seconds(10))
                group.cancelAll()
            }
        } catch {}
        state.withLock { $0.outboxes[number] = nil }
        report.yield(.closed(number))
    }
}

/// Tells the room whom the radio hears.
private final class Ears: CentralRoleEvents {
    private let report: AsyncStream<Room.Event>.Continuation

    /// One element whenever the adapter is ready for a scan.
    let poweredOn: AsyncStream<Void>
    private let powered: AsyncStream<Void>.Continuation

    init(_ report: AsyncStream<Room.Event>.Continuation) {
        self.report = report
        (poweredOn, powered) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func centralAdapterDidChange(_ state: AdapterState) { if state == .poweredOn { powered.yield() } }

    func centralDidDiscover(_ discovery: Discovery) {
        report.yield(
            .heard(discovery.identity, token: Greeting.token(localName: discovery.advertisement.localName)))
    }
}
