import ArgumentParser
import Dispatch
import Foundation

#if HCI
    import FerryBluetooth
    import FerryHCI
#endif

/// `ferry capture`: records what programs exchange with this machine's Bluetooth adapters.
struct Capture: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Records what programs and the kernel exchange with this machine's Bluetooth adapters.",
        discussion: """
            Listens only: nothing is sent, and whoever uses an adapter goes on. The file is btsnoop, which Wireshark, tshark \
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
            let monitor: HCIMonitor
            do throws(BluetoothError) {
                monitor = try await HCIMonitor.start(try HCIMonitor.Source(transport), to: file)
            } catch {
                throw CommandFailure(error.message)
            }
            // At once, also to a file, for whoever waits for it.
            FileHandle.standardOutput.write(Data("recording \(transport) to \(file)\n".utf8))
            await Self.wait(for: seconds) { monitor.failure != nil }
            await monitor.stop()
            let counts = monitor.packetCounts.sorted { $0.key < $1.key }.map { "\($0.value) of hci\($0.key)" }
            print("packets: \(counts.isEmpty ? "none" : counts.joined(separator: ", "))")
            if let failure = monitor.failure { throw CommandFailure(failure) }
        }

        /// Until the time is up, somebody interrupts, or something has gone wrong.
        private static func wait(for seconds: Double?, isOver: @escaping @Sendable () -> Bool) async {
            let (signals, signal) = AsyncStream.makeStream(of: Void.self)
            let queue = DispatchQueue(label: "ferry.capture")
            var sources: [any DispatchSourceProtocol] = []
            for number in [SIGINT, SIGTERM] {
                Foundation.signal(number, SIG_IGN)  // the source sees it all the same
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler { signal.finish() }
                source.resume()
                sources.append(source)
            }
            let timer = DispatchSource.makeTimerSource(queue: queue)
            let end = seconds.map { DispatchTime.now() + $0 }
            timer.schedule(deadline: .now() + 0.2, repeating: 0.2)
            timer.setEventHandler { if isOver() || end.map({ $0 <= .now() }) ?? false { signal.finish() } }
            timer.resume()
            for await _ in signals {}
            timer.cancel()
            for source in sources { source.cancel() }
        }
    #endif
}
