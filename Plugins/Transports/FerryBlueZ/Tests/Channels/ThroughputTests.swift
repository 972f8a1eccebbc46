#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// The speed of a channel beside that of bare sockets (l2test(1)) over the same connection, one after the other:
    ///
    ///     FERRY_MEASURE=1 scripts/interop bluez '^FerryBlueZTests\\.ThroughputTests'
    @Suite(
        .tags(.adapter, .l2cap),
        .enabled(if: Machine.isHere && getenv("FERRY_MEASURE") != nil, "measures, when FERRY_MEASURE is set"),
        .serialized, .timeLimit(.minutes(5)))
    struct ThroughputTests {
        private static let size = 4096
        private static let count = 250
        private static let rounds = 7

        /// Bytes a second through Ferry's two ends.
        private func ferry(_ rig: ChannelRig) async throws -> Double {
            let psm = try await rig.peripheral.publishL2CAPChannel(encryptionRequired: false)
            let (near, far) = try await rig.open(psm)
            let seconds = try await Meter(from: near, to: far, size: Self.size).send(Self.count)
            near.close()
            try rig.peripheral.unpublishL2CAPChannel(psm)
            return Double(Self.size * Self.count) / seconds
        }

        /// Bytes a second between two bare sockets.
        private func raw(_ round: Int, to address: String) async throws -> Double {
            let psm = "\(210 + round)"
            let total = "\(Self.size * Self.count)"
            let receiver = try SocketTester("-r", "-i", "hci0", "-P", psm, "-I", "8192", "-b", total)
            defer { receiver.stop() }
            try await until { receiver.output.contains("Waiting") }
            let sender = try SocketTester(
                // More than is counted: what the receiver has not read when the channel ends is lost.
                "-s", "-i", "hci1", "-P", psm, "-b", "\(Self.size)", "-N", "\(Self.count + 80)", "-L", "10", address)
            defer { sender.stop() }
            try await until("the receiver's line: \(receiver.output); the sender: \(sender.output)") {
                receiver.output.contains("bytes in")
            }
            let line = try #require(receiver.output.split(separator: "\n").first { $0.contains("bytes in") })
            // It waits until its end of the channel is gone. Linux 6.1 goes on sending what is queued until then, with the
            // number of a channel that the receiver may have given to the next one.
            try await until("the sender's end: \(sender.output)") { sender.hasEnded }
            let words = line.split(separator: " ")
            let seconds = try #require(words.firstIndex(of: "in").flatMap { Double(words[$0 + 1]) })
            return Double(Self.size * Self.count) / seconds
        }

        @Test func channelsKeepUpWithBareSockets() async throws {
            let rig = try await ChannelRig.connected
            let address = try await ChannelRig.address(of: try await Machine.adapters().peripheral)
            var pairs: [(ferry: Double, raw: Double)] = []
            for round in 0..<Self.rounds { pairs.append((try await ferry(rig), try await raw(round, to: address))) }
            for pair in pairs {
                print("Ferry \(Int(pair.ferry / 1000)) kB/s, bare sockets \(Int(pair.raw / 1000)) kB/s")
            }
            let ratios = pairs.map { $0.ferry / $0.raw }.sorted()
            print("median of the ratios: \(ratios[ratios.count / 2])")
            #expect(ratios[ratios.count / 2] >= 0.9)
        }
    }
#endif
