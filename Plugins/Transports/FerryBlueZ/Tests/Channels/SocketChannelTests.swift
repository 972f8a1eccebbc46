#if BlueZ
    import Ferry
    @testable import FerryBlueZ
    import FerryBluetooth
    import FerryTesting
    import Glibc
    import TestSupport
    import Testing

    /// The link over a socket, with two ends of one of the system's in place of the kernel's L2CAP: no Bluetooth is needed.
    @Suite(
        .tags(.adapter, .l2cap),
        .disabled(if: Machine.isHere, "slow in the virtual machine, which has the real sockets"),
        .timeLimit(.minutes(5)))
    struct SocketChannelTests {
        private func sockets() throws -> (FileDescriptor, FileDescriptor) {
            var ends: [Int32] = [-1, -1]
            let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
            return (FileDescriptor(owning: ends[0]), FileDescriptor(owning: ends[1]))
        }

        private func channel(_ end: FileDescriptor, on thread: BusThread, canPause: Bool = true) -> BlueZL2CAPChannel {
            BlueZL2CAPChannel(
                end, psm: PSM(rawValue: 0x80), peerID: PeerID(rawValue: 1),
                peer: PeerIdentity("peer", certainty: .connection), sendMTU: 512, receiveMTU: 512,
                canPause: canPause, on: thread, queuedBytes: { _ in 0 }, onEnd: { _ in })
        }

        @Test(arguments: LinkConformance.Requirement.allCases, [true, false])
        func keepsTheContract(_ requirement: LinkConformance.Requirement, canPause: Bool) async throws {
            let thread = try BusThread()
            defer { thread.stop() }
            let kit = LinkConformance(time: .patient, deviations: canPause ? [] : [.cannotPause, .neverFull]) {
                let (a, b) = try sockets()
                return (channel(a, on: thread, canPause: canPause), channel(b, on: thread, canPause: canPause))
            }
            try await kit.check(requirement)
        }

        /// What an LE peer may send, and a socket cannot tell from its end at a glance.
        @Test func emptyPacketsAreNoEnd() async throws {
            let thread = try BusThread()
            defer { thread.stop() }
            let (a, b) = try sockets()
            let witness = Witness()
            let channel = channel(a, on: thread)
            channel.activate(witness)
            for packet in [[1, 2, 3], [], [4]] as [[UInt8]] {
                #expect(send(b.rawValue, packet, packet.count, 0) == packet.count)
            }
            try await until { witness.chunks == [[1, 2, 3], [4]] }
            #expect(witness.reasons.isEmpty)
            channel.close()
            try await until { witness.reasons == ["closed"] }
        }

        @Test(
            arguments: [
                ("6.1.0-56-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-10-11)", true),
                ("6.1.0-30-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.124-1 (2025-01-12)", false),
                ("6.1.21-v8+", "#1642 SMP PREEMPT", false), ("6.9.12", "#1", false), ("6.10.0-rc1", "#1", true),
                ("6.8.0-51-generic", "#52-Ubuntu SMP PREEMPT_DYNAMIC", false), ("7.0", "", true), ("", "", false),
                ("5", "", false), ("linux", "Debian ", false),
            ])
        func kernelsAreKnownByTheirNames(_ release: String, version: String, returnsCreditsWhenRead: Bool) {
            #expect(
                Kernel.returnsCreditsWhenRead(release: release, version: version) == returnsCreditsWhenRead)
        }
    }
#endif
