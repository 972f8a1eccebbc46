import Ferry
import FerryBluetooth
import FerryLab
import FerryTransports
import Synchronization

extension BenchRun {
    /// Measures over adapters, in real time. Each behaves as the point's settings ask, as far as it can.
    static func adapters(
        _ settings: BenchSettings, _ adapters: [NamedTransport],
        _ onSecond: @escaping @Sendable (PairProgress) -> Void = { _ in }
    ) async throws -> BenchOutcome {
        try BenchTransport.adapters(adapters).check(settings)
        var options = RadioOptions()
        options.attMTU = settings.attMTU
        options.connectionInterval = .microseconds(Int64((settings.interval * 1_000).rounded()))
        options.onAdvice = note
        let makers = try adapters.map { adapter throws(FerryError) in
            guard case .adapters(let make) = adapter.opening else { throw BenchTransport.noAdapter(adapter) }
            return try make(options)
        }
        let opened = OpenedAdapters()
        let run = try BenchRun(settings, time: SystemTime(), recordsTimeline: false, onSecond: onSecond) { index in
            let adapter = try await makers[index](index == 0 ? "peripheral" : "central \(index)")
            opened.add(adapter.close)
            return adapter.adapter
        }
        do {
            let outcome = try await run.measure()
            await opened.close()
            return outcome
        } catch {
            await opened.close()
            throw error
        }
    }
}

/// The adapters of one point. The next point has other settings and opens them anew.
private final class OpenedAdapters: Sendable {
    private let closers = Mutex<[@Sendable () -> Void]>([])

    func add(_ close: @escaping @Sendable () -> Void) { closers.withLock { $0.append(close) } }

    /// Closes them, and gives the other side of a channel the time to notice: most controllers serve one host at a time.
    func close() async {
        for close in closers.withLock({ $0 }) { close() }
        try? await Task.sleep(for: .milliseconds(500))
    }
}
