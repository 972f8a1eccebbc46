#if MQTT
    import Ferry
    import FerryFleet
    import FerryMQTT
    import Glibc
    import Synchronization
    import TestSupport
    import Testing

    /// A broker that ends each connection in its own way, in the place of a mosquitto, which would have to be short of memory for it.
    @Suite(.tags(.recovery), .timeLimit(.minutes(5))) struct LostConnectionTests {
        /// Accepts connections one after another, says that they are welcome, and then one thing more.
        private final class Broker: Sendable {
            let port: Int
            private let socket: Int32
            private let accepted = Atomic(0)
            private let hearsFirst: Bool
            private let texts = Mutex<[String]>([])

            /// - Parameters:
            ///   - words: what it says before it ends a connection, one after the other.
            ///   - hearsFirst: whether it waits for something after each welcome.
            init(saying words: [[UInt8]], hearsFirst: Bool = false) throws {
                self.hearsFirst = hearsFirst
                let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                var place = sockaddr_in()
                place.sin_family = sa_family_t(AF_INET)
                place.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                let status = withUnsafeMutablePointer(to: &place) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        bind(socket, $0, size) == 0 && Glibc.listen(socket, 8) == 0
                            && getsockname(socket, $0, &size) == 0
                    }
                }
                try #require(status)
                self.socket = socket
                port = Int(UInt16(bigEndian: place.sin_port))
                var thread = pthread_t()
                let work = Unmanaged.passRetained(Box { [self] in serve(words) })
                pthread_create(
                    &thread, nil,
                    { work in
                        if let work { Unmanaged<Box>.fromOpaque(work).takeRetainedValue().body() }
                        return nil
                    }, work.toOpaque())
                pthread_detach(thread)
            }

            private final class Box: Sendable {
                let body: @Sendable () -> Void
                init(_ body: @escaping @Sendable () -> Void) { self.body = body }
            }

            /// How many connections there have been.
            var connections: Int { accepted.load(ordering: .acquiring) }

            /// What it has heard first after each welcome.
            var heard: [String] { texts.withLock { $0 } }

            /// No more connections.
            func end() { shutdown(socket, Int32(SHUT_RDWR)) }

            private func serve(_ words: [[UInt8]]) {
                while true {
                    let client = accept(socket, nil, nil)
                    guard client >= 0 else { break }
                    let number = accepted.add(1, ordering: .acquiringAndReleasing).oldValue
                    var bytes = [UInt8](repeating: 0, count: 1024)
                    _ = recv(client, &bytes, bytes.count, 0)
                    // CONNACK without properties (MQTT 5.0, 3.2).
                    let answer: [UInt8] = [0x20, 3, 0, 0, 0] + words[number % words.count]
                    _ = Glibc.send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
                    if hearsFirst {
                        let count = recv(client, &bytes, bytes.count, 0)
                        texts.withLock { $0.append(String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)) }
                    }
                    Glibc.shutdown(client, Int32(SHUT_WR))
                    while recv(client, &bytes, bytes.count, 0) > 0 {}
                    close(client)
                }
                close(socket)
            }
        }

        /// What comes first there was taken by a broker that has lost it, and is published again.
        @Test func nothingIsSentAgainByItselfAtTheNextConnection() async throws {
            let broker = try Broker(saying: [[]], hearsFirst: true)
            var configuration = try MQTTConfiguration("mqtt://127.0.0.1:\(broker.port)")
            configuration.timeout = .seconds(60)
            let outlet = try await MQTTOutlet.open(configuration)
            func message(_ name: String) -> OutletMessage {
                OutletMessage(.init(sender: "a", stream: "s"), key: name, bytes: [1])
            }
            let answer = await outlet.publish(message("the later one"))
            guard case .unanswered(let error) = answer else {
                Issue.record("the answer was \(answer)")
                return
            }
            #expect(error.code == .mqttNoServer && broker.heard.first?.contains("the later one") == true)
            try await until("the next connection") {
                _ = await outlet.publish(message("the earlier one"))
                return broker.heard.count >= 2
            }
            let text = try #require(broker.heard.dropFirst().first)
            #expect(text.contains("the earlier one") && !text.contains("the later one"), "\(text.debugDescription)")
            await outlet.close()
            broker.end()
        }

        /// After a malformed packet libmosquitto's own thread ends for good.
        @Test(
            arguments: [
                ("nothing", []), ("a packet of no type", [0x00, 0x00]), ("a server's DISCONNECT", [0xE0, 2, 0x97, 0]),
                ("a packet that is too long", [0x30, 0xFF, 0xFF, 0xFF, 0xFF]),
            ] as [(String, [UInt8])])
        func itConnectsAgainAfterEveryEnd(_ what: String, _ bytes: [UInt8]) async throws {
            let broker = try Broker(saying: [bytes])
            var configuration = try MQTTConfiguration("mqtt://127.0.0.1:\(broker.port)")
            configuration.timeout = .seconds(60)
            let outlet = try await MQTTOutlet.open(configuration)
            try await until("a third connection after \(what)") { broker.connections >= 3 && outlet.connections >= 3 }
            await outlet.close()
            let last = broker.connections
            broker.end()
            let message = OutletMessage(.init(sender: "a", stream: "s"), key: "a/s/1", bytes: [1])
            #expect(await !outlet.publish(message).isTaken)
            #expect(broker.connections == last)
        }
    }
#endif
