import Workloads

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Speed beside NIO's, a plain copy's and an `AsyncStream`'s, in one run. Exits with 1 when a target is missed.
@main enum Ratios {
    static func main() async throws {
        var report = Report()
        try await checkChannelSpeed(&report)
        try checkExchangeSpeed(&report)
        try checkSpeed(&report)
        try checkDeviceSpeed(&report)
        try checkCodecs(&report)
        try checkFlatness(&report)
        print(report.missed == 0 ? "\nAll targets are met." : "\n\(report.missed) targets are missed.")
        exit(report.missed == 0 ? 0 : 1)
    }
}
