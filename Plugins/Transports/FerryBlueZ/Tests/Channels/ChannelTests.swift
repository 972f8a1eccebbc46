#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerryJSON
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// L2CAP channels through a real kernel, between Ferry's two ends and with BlueZ's own tester of such sockets.
    @Suite(
        .tags(.adapter, .l2cap), .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"),
        .serialized,
        .timeLimit(.minutes(5)))
    struct ChannelTests {
        /// What is the kernel's part of the contract; the rest is checked without it (``SocketChannelTests``).
        @Test(
            arguments: [
                .chunksArriveInOrder, .aFullQueueSaysFalseThenReady, .chunksWaitForActivation,
                .aPausedReceiverStopsTheSender,
            ] as [LinkConformance.Requirement])
        func keepsTheContract(_ requirement: LinkConformance.Requirement) async throws {
            let rig = try await ChannelRig.connected
            let psm = try await rig.peripheral.publishL2CAPChannel(encryptionRequired: false)
            defer { try? rig.peripheral.unpublishL2CAPChannel(psm) }
            let kit = LinkConformance(time: Machine.time) { try await rig.open(psm) }
            try await kit.check(requirement)
        }

        @Test func messagesCross() async throws {
            let rig = try await ChannelRig.connected
            let psm = try await rig.peripheral.publishL2CAPChannel(encryptionRequired: false)
            let (near, far) = try await rig.open(psm)
            #expect(near.psm == psm && far.psm == psm)
            #expect(try near.peerID == rig.connection.peripheral)
            #expect(near.maximumChunkSize == 4096)
            let ends = try [near, far].map {
                try MessageChannel(over: $0, codec: JSONCodec<[Int]>(), framing: LengthPrefixFraming())
            }
            for (sender, receiver) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                let message = (0..<5000).map { $0 * $0 }
                async let sent: Void = sender.send(message, timeout: .unreached)
                var messages = receiver.messages.makeAsyncIterator()
                #expect(try await messages.next() == message)
                try await sent
            }
            for end in ends { end.close() }
            try rig.peripheral.unpublishL2CAPChannel(psm)
        }

        /// Where `isSlow`, the channel has ended before the receiver is done with the first of what came.
        @Test(arguments: [false, true])
        func closingLetsWhatIsQueuedArrive(isSlow: Bool) async throws {
            let rig = try await ChannelRig.connected
            let psm = try await rig.peripheral.publishL2CAPChannel(encryptionRequired: false)
            let (near, far) = try await rig.open(psm)
            let witnesses = (Witness(), Witness())
            if isSlow {
                witnesses.1.onFirstChunk = {
                    while witnesses.0.reasons.isEmpty { usleep(10_000) }
                    usleep(300_000)  // The peer's kernel hears of it a moment later.
                }
            }
            near.activate(witnesses.0)
            far.activate(witnesses.1)
            let chunk = [UInt8](repeating: 7, count: 4096)
            var sent = 0
            while try near.trySend(chunk.span.bytes) { sent += 1 }
            near.close()
            try await until { witnesses.0.reasons == ["closed"] && witnesses.1.reasons == ["disconnected"] }
            #expect(sent > 1)
            #expect(witnesses.1.chunks.count == sent)
            try rig.peripheral.unpublishL2CAPChannel(psm)
        }

        @Test func whatIsNotOfferedIsRefused() async throws {
            let rig = try await ChannelRig.connected
            for (psm, code) in [
                (0xEE, BluetoothError.Code.channelRefused), (0, .invalidArgument), (0x100, .invalidArgument),
            ] {
                let error = await #expect(throws: BluetoothError.self) {
                    _ = try await rig.connection.openL2CAPChannel(PSM(rawValue: UInt16(psm)))
                }
                #expect(error?.code == code, "\(error.map { "\($0)" } ?? "")")
            }
        }

        /// Each packet begins with a number and its length, and goes on with 0x7F; the tester checks all of it.
        private static func packet(_ number: Int, _ size: Int) -> [UInt8] {
            [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8), 0, 0]
                + [UInt8(truncatingIfNeeded: size), UInt8(size >> 8)] + [UInt8](repeating: 0x7F, count: size - 6)
        }

        @Test func aForeignCentralSends() async throws {
            let rig = try await ChannelRig.connected
            let psm = try await rig.peripheral.publishL2CAPChannel(encryptionRequired: false)
            let (serving, _) = try await Machine.adapters()
            let tester = try SocketTester(
                "-s", "-i", "hci1", "-P", "\(psm.rawValue)", "-b", "600", "-N", "40",
                try await ChannelRig.address(of: serving))
            defer { tester.stop() }
            let channel = try await rig.accepted()
            let witness = Witness()
            channel.activate(witness)
            try await until { witness.reasons == ["disconnected"] }
            // It closes without a wait for credits, so that what it sent last may stay behind with it; what needs none arrives:
            // this side's MTU of 8192 in parts of 247 bytes is what it has credits for at first, 11 packets.
            let chunks = witness.chunks
            #expect(chunks.count >= 10, "\(tester.output)")
            #expect(chunks == chunks.indices.map { Self.packet($0, 600) })
            try rig.peripheral.unpublishL2CAPChannel(psm)
        }

        @Test func aForeignPeripheralReceives() async throws {
            let rig = try await ChannelRig.connected
            let tester = try SocketTester("-r", "-i", "hci0", "-P", "200", "-b", "600", "-I", "600")
            defer { tester.stop() }
            var channel: (any L2CAPChannel)?
            try await until("the tester's socket") {
                channel = try? await rig.connection.openL2CAPChannel(PSM(rawValue: 200))
                return channel != nil
            }
            let open = try #require(channel)
            #expect(open.maximumChunkSize == 600)
            let witness = Witness()
            let next = Mutex(0)
            let fill: @Sendable () -> Void = {
                next.withLock { next in
                    while next < 200, (try? open.trySend(Self.packet(next, 600).span.bytes)) == true { next += 1 }
                }
            }
            witness.onReady = fill
            open.activate(witness)
            fill()
            try await until { next.withLock { $0 == 200 } }
            // It stops reading when the channel ends, whatever has come before.
            try await until { tester.output.components(separatedBy: "600 bytes in").count - 1 >= 200 }
            #expect(!tester.output.contains("missmatch"), "\(tester.output)")
            open.close()
            try await until { witness.reasons == ["closed"] }
        }

        @Test func closingTheRoleClosesItsChannels() async throws {
            let rig = try await ChannelRig.connected
            let (serving, _) = try await Machine.adapters()
            let role = serving.openPeripheral(rig)
            let psm = try await role.publishL2CAPChannel(encryptionRequired: false)
            let (near, far) = try await rig.open(psm)
            let witnesses = (Witness(), Witness())
            near.activate(witnesses.0)
            far.activate(witnesses.1)
            role.close()
            try await until { witnesses.0.reasons == ["disconnected"] && witnesses.1.reasons == ["closed"] }
            let error = await #expect(throws: BluetoothError.self) {
                _ = try await rig.connection.openL2CAPChannel(psm)
            }
            #expect(error?.code == .channelRefused)
        }

        @Test func theKernelTellsTheStrength() async throws {
            let connection = try await ChannelRig.connected.connection
            do {
                let strength = try await connection.readRSSI()
                #expect((-127...20).contains(strength))
            } catch {
                // btvirt's controllers know no Read RSSI: the kernel has asked one, and says 3, "Failed".
                #expect("\(error)".contains("management status 3"), "\(error)")
            }
        }
    }
#endif
