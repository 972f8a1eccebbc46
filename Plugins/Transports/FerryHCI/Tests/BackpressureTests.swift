#if HCI
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// The radio's own backpressure, over controllers that complete packets once a connection interval, and with Bumble's
    /// host as the one who receives. What has left the host, and what the controller has completed, is read from the capture.
    @Suite(.tags(.adapter), .withOthers, .serialized, .timeLimit(.minutes(5)))
    struct BackpressureTests {
        /// Buffers of a controller, as `controllers.py` is told.
        private static let buffers = 8
        private static let total = 16_000
        /// Bytes of a value at ATT_MTU 23, and of its headers in the queue.
        private static let (length, headers) = (20, 7)

        @Test func valuesAreRefusedUntilTheControllerHasCompletedPackets() async throws {
            let radio = try await Radio.start(.bumble(acl: 251), 2, ["--interval", "--acl-num", "\(Self.buffers)"])
            defer { radio.stop() }
            let capture = Interop.file("capture")
            var configuration = HCIConfiguration()
            configuration.capture = capture
            let sender = Sender(capture: capture, total: Self.total)
            let adapter = try await HCIAdapter.open(radio.channels[0], configuration)
            let role = adapter.openPeripheral(sender)
            let published = try await role.publish(
                ServiceDefinition(
                    Layout.service,
                    characteristics: [
                        CharacteristicDefinition(
                            Layout.characteristic, properties: [.notify, .read], permissions: .readable)
                    ]))
            sender.begin(role, published.characteristics[0])
            _ = try await role.startAdvertising(Advertisement(services: [Layout.service]))
            let central = try Interop.Script("peer.py", ["central", radio.peers[1], "notify=\(Self.total)"])
            #expect(await central.exitStatus() == 0, "\(central.output)")
            // Nothing is lost, doubled or out of order.
            #expect(central.output.contains("C: collected \(Self.total) match = True"), "\(central.output)")
            #expect(radio.complaints.isEmpty)
            role.close()
            adapter.close()

            let moments = sender.moments
            let refusals = moments.filter { !$0.isReady }
            // The queue is refilled when it is half empty, and 800 values are more than twice what it holds.
            #expect(refusals.count >= 3)
            let capacity = 8192 / (Self.length + Self.headers)
            for moment in moments {
                // The controller never holds more than its buffers, and the host no more than its queue.
                #expect((0...Self.buffers).contains(moment.inFlight), "\(moment)")
                #expect(moment.accepted - moment.sent <= capacity, "\(moment)")
            }
            for refusal in refusals { #expect(refusal.accepted - refusal.sent == capacity, "full: \(refusal)") }
            // The first values are refused before the host has sent any.
            for refusal in refusals.dropFirst() {
                #expect(refusal.inFlight == Self.buffers, "the buffers are used up: \(refusal)")
            }
            for (refusal, ready) in zip(moments, moments.dropFirst()) where !refusal.isReady {
                #expect(ready.isReady)
                #expect(ready.completed > refusal.completed, "ready without a completed packet: \(refusal), \(ready)")
                #expect(ready.accepted == refusal.accepted)
            }
        }

        /// How things stood when a value was refused, or when the host said that it is ready.
        private struct Moment: Sendable {
            let isReady: Bool
            let accepted: Int
            /// Values that the controller has been sent.
            let sent: Int
            /// Packets that it has completed, of all kinds, and that it holds.
            let completed: Int
            let inFlight: Int
        }

        /// Sends values until one is refused, and goes on when told.
        private final class Sender: PeripheralRoleEvents, Sendable {
            private struct State {
                var role: (any PeripheralRole)?
                var characteristic = AttributeID(rawValue: 0)
                var accepted = 0
                var moments: [Moment] = []
            }

            private let state = Mutex(State())
            private let capture: String
            private let total: Int

            init(capture: String, total: Int) {
                self.capture = capture
                self.total = total
            }

            var moments: [Moment] { state.withLock { $0.moments } }

            func begin(_ role: any PeripheralRole, _ characteristic: AttributeID) {
                state.withLock { state in
                    state.role = role
                    state.characteristic = characteristic
                }
            }

            func central(
                _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as kind: Subscription
            ) {
                send()
            }

            func peripheralIsReadyToUpdate() {
                note(isReady: true)
                send()
            }

            private func send() {
                let pattern = Layout.pattern(total)
                let isRefused = state.withLock { state in
                    guard let role = state.role else { return false }
                    while state.accepted * BackpressureTests.length < total {
                        let value = Array(
                            pattern[
                                (state.accepted * BackpressureTests.length)..<((state.accepted + 1)
                                    * BackpressureTests.length)])
                        let isTaken = try? role.tryUpdateValue(value.span.bytes, of: state.characteristic, for: .all)
                        guard isTaken == true else { return true }
                        state.accepted += 1
                    }
                    return false
                }
                if isRefused { note(isReady: false) }
            }

            private func note(isReady: Bool) {
                let (sent, values, completed) = Self.packets(of: capture)
                state.withLock {
                    $0.moments.append(
                        Moment(
                            isReady: isReady, accepted: $0.accepted, sent: values, completed: completed,
                            inFlight: sent - completed))
                }
            }

            /// What the capture, a btsnoop file with H4 records, has so far: packets of data sent, those of them that are
            /// notifications, and packets completed.
            private static func packets(of path: String) -> (sent: Int, values: Int, completed: Int) {
                let bytes = [UInt8](FileManager.default.contents(atPath: path) ?? Data())
                var (sent, values, completed) = (0, 0, 0)
                var start = 16
                while start + 24 < bytes.count {
                    let count = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
                    let isReceived = bytes[start + 11] & 1 == 1
                    let packet = Array(bytes[start + 24..<min(start + 24 + count, bytes.count)])
                    start += 24 + count
                    if packet[0] == 0x02, !isReceived {
                        sent += 1
                        if packet.count > 9, packet[9] == 0x1B { values += 1 }
                    } else if packet[0] == 0x04, packet[1] == 0x13, packet.count >= 8 {
                        completed += Int(packet[6]) | Int(packet[7]) << 8
                    }
                }
                return (sent, values, completed)
            }
        }
    }
#endif
