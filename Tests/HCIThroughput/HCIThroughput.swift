import ArgumentParser

#if HCI
    import FerryBluetooth
    import FerryHCI
    import Foundation
#endif

/// What scripts/bench hci measures with: the link between two controllers, by itself and with Ferry's host on both ends.
@main struct HCIThroughput: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hci-throughput",
        abstract: "Measures values a second from the first controller's host to the second's.",
        discussion: """
            raw: whole frames of L2CAP as fast as the controllers take them, without any host: the link's ceiling.
            notify: notifications through FerryHCI at an ATT_MTU that a value fills. joined: the same at an ATT_MTU of 517, \
            where several values that wait go in one PDU. channel: SDUs of a credit-based channel through FerryHCI.
            Prints what was measured, bytes of a value, values a second, and microseconds of processor time for each, of \
            this process, which has both ends.
            """)

    @Argument(help: "raw-notify, raw-channel, notify, joined or channel.")
    var kind: Kind

    @Argument(help: "Two HCI channels: hci:tcp:HOST:PORT or hci:unix:PATH.")
    var places: [String]

    @Option(help: "Bytes of a value, 4 to 2000.")
    var length = 20

    @Option(help: "Values to send.")
    var count = 200_000

    enum Kind: String, ExpressibleByArgument {
        case rawNotify = "raw-notify"
        case rawChannel = "raw-channel"
        case notify, joined, channel
    }

    func validate() throws {
        guard places.count == 2 else { throw ValidationError("Name two HCI channels.") }
        guard (4...2000).contains(length) else { throw ValidationError("A value has 4 to 2000 bytes.") }
        guard count > 0 else { throw ValidationError("Send one value at least.") }
    }

    func run() async throws {
        #if HCI
            let channels = try places.map { try HCIChannel($0) }
            let measured: Measured
            switch kind {
            case .rawNotify, .rawChannel:
                let frames = FrameShape(isNotification: kind == .rawNotify, length: length)
                measured = try RawPair(channels).measure(frames, count: count)
            case .notify, .joined, .channel:
                let pair = try await FerryPair.connect(
                    channels, length: length, mtu: kind == .notify ? max(23, length + 3) : 517)
                measured = try await kind == .channel ? pair.sendOnChannel(count) : pair.notify(count)
            }
            let each = String(format: "%.2f", measured.processorSeconds / Double(count) * 1e6)
            print("\(kind.rawValue) \(length) \(Int(Double(count) / measured.seconds)) \(each)")
        #else
            throw ValidationError("This build has no sockets: build with --traits HCI.")
        #endif
    }
}

#if HCI
    /// How long something took.
    struct Measured {
        var seconds: Double
        var processorSeconds: Double

        /// A stop watch; call the result to stop it.
        static func start() -> () -> Measured {
            let (time, processor) = (ContinuousClock.now, processorTime())
            return {
                let elapsed = ContinuousClock.now - time
                return Measured(
                    seconds: elapsed / .seconds(1), processorSeconds: processorTime() - processor)
            }
        }

        /// User and system time of this process, in seconds.
        private static func processorTime() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
    }

    /// What goes wrong with a measurement.
    struct ThroughputError: Error, CustomStringConvertible {
        let description: String
    }
#endif
