import ArgumentParser
import Foundation

#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
#endif

/// `ferry capture`: records what programs exchange with this machine's Bluetooth adapters.
struct Capture: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Records what programs and the kernel exchange with this machine's Bluetooth adapters.",
        discussion: """
            Listens only: nothing is sent, and programs that use an adapter are not disturbed. The file is btsnoop, which Wireshark, tshark \
            and btmon read. Everything that is sent can be read in it, and keys. Linux only, in builds with the trait HCI, \
            and with the capability CAP_NET_RAW or as root. Ends after --seconds, or when it is interrupted (Ctrl-C).
            """)

    @Option(
        name: .long,
        help: ArgumentHelp(
            "What to listen to: hci:monitor for all adapters, hci:monitor:0 for one.", valueName: "source"))
    var transport = "hci:monitor"

    @Option(
        name: .long, help: ArgumentHelp("How long to record; until interrupted unless given.", valueName: "seconds"))
    var seconds: Double?

    @Argument(help: "The file, in place of one that is there.")
    var file: String

    func validate() throws {
        if let seconds, !(seconds > 0 && seconds <= 1_000_000) {
            throw ValidationError("--seconds \(seconds) is out of range; give more than 0 and at most 1000000.")
        }
        #if HCI
            do { _ = try HCIMonitor.Source(transport) } catch { throw ValidationError(error.message) }
        #else
            throw ValidationError(
                "Captures are not part of this build. Build with the trait HCI: swift run --traits HCI ferry capture ..."
            )
        #endif
    }

    #if HCI
        func run() async throws {
            let (source, seconds, file) = (transport, seconds, file)
            // To interrupt it is the usual end.
            let (result, _) = await Interruptible.run { try await Self.record(source, to: file, for: seconds) }
            try result.get()
        }

        private static func record(_ source: String, to file: String, for seconds: Double?) async throws {
            let monitor: HCIMonitor
            do throws(BluetoothError) {
                monitor = try await HCIMonitor.start(try HCIMonitor.Source(source), to: file)
            } catch {
                throw CommandFailure(error.message)
            }
            do {
                // At once, also to a file, for a reader that waits for it.
                try Output.print("recording \(source) to \(file)\n")
                await wait(for: seconds) { monitor.failure != nil }
            } catch {
                await monitor.stop()
                throw error
            }
            await monitor.stop()
            let counts = monitor.packetCounts.sorted { $0.key < $1.key }.map { "\($0.value) of hci\($0.key)" }
            try Output.print("packets: \(counts.isEmpty ? "none" : counts.joined(separator: ", "))\n")
            if let failure = monitor.failure { throw CommandFailure(failure) }
        }

        /// Until the time is up, a signal comes, or something has gone wrong.
        private static func wait(for seconds: Double?, isOver: () -> Bool) async {
            let time = SystemTime()
            let end = seconds.map { time.now + .seconds($0) }
            while !Task.isCancelled, !isOver() {
                let now = time.now
                guard now < end ?? .distantFuture else { return }
                try? await time.sleep(until: min(now + .milliseconds(200), end ?? .distantFuture))
            }
        }
    #endif
}
