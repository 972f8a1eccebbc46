import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySMP
import FerrySimulator
import FerryTesting
import Synchronization
import TestSupport

/// A client and a server over the virtual radio, in virtual time.
struct Managed: Sendable {
    let client: SMPClient
    let server: Server
    let time: VirtualTime

    /// The server, which the test may look at and change.
    final class Server: Sendable {
        private let state: Mutex<SMPServer>
        /// Requests and answers as they went by, in hexadecimal.
        let journal = Journal()
        /// Holds the answer to each request back until so many have come; nil for none.
        private let held: Mutex<[[UInt8]]> = Mutex([])

        init(_ server: SMPServer) { state = Mutex(server) }

        var now: SMPServer { state.withLock { $0 } }
        func change(_ body: (inout SMPServer) -> Void) { state.withLock { body(&$0) } }

        func answer(_ request: [UInt8]) -> [UInt8]? {
            journal.add("> " + hex(request))
            let answer = state.withLock { $0.answer(request) }
            if let answer { journal.add("< " + hex(answer)) }
            return answer
        }
    }

    /// Runs `body` with a client of a server with this configuration, over a link of this ATT_MTU.
    ///
    /// - Parameters:
    ///   - link: the air; nil for one that takes no time.
    ///   - workPerByte: how long the server works on each byte of a request before it answers.
    static func run<Value: Sendable>(
        _ configuration: SMPServer.Configuration = .init(), attMTU: Int = 247, link: LinkParameters? = nil,
        workPerByte: Duration = .zero,
        _ body: @escaping @Sendable (Managed) async throws -> Value
    ) throws -> Value {
        let time = VirtualTime()
        var radio = LoopbackRadio.Configuration()
        radio.attMTU = attMTU
        if let link { radio.linkLayer = try RadioSimulator(link, seed: 1) }
        let air = try LoopbackRadio(time: time, configuration: radio)
        let server = Server(SMPServer(configuration))
        return try VirtualRun.run(under: time) {
            let device = air.makeAdapter()
            let phone = air.makeAdapter()
            let listener = try await GATTTransport(adapter: device, configuration: .smp, time: time).listen()
            let outbound = try await GATTTransport(adapter: phone, configuration: .smp, time: time)
                .connect(timeout: .seconds(30))
            var links = listener.links.makeAsyncIterator()
            guard let inbound = await links.next() else { throw FerryError(.peerNotFound, "no link came") }
            let client = try SMPClient(unreadOver: outbound, timeout: .seconds(5), time: time)
            let channel = try MessageChannel(over: inbound, codec: BytesCodec(), framing: SMPFraming(), time: time)
            return try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await client.readAnswers() }
                group.addTask {
                    for await result in channel.results {
                        guard case .success(let request) = result, let answer = server.answer(request) else { continue }
                        if workPerByte > .zero { try? await time.sleep(for: workPerByte * request.count) }
                        try? await channel.send(answer)
                    }
                }
                let value = try await body(Managed(client: client, server: server, time: time))
                client.close()
                channel.close()
                group.cancelAll()
                return value
            }
        }
    }
}
