import Workloads

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

// What is the same on every machine, against stored thresholds: peak memory, bytes and chunks on the wire, allocations,
// copies. Exits with 1 when a threshold is exceeded.
var report = Report()
try checkPeakMemory(&report)
try checkWireCosts(&report)
try checkFramings(&report)
try checkSequenced(&report)
try checkChannels(&report)
try checkHour(&report)
print(report.missed == 0 ? "\nAll thresholds are kept." : "\n\(report.missed) thresholds are exceeded.")
exit(report.missed == 0 ? 0 : 1)
