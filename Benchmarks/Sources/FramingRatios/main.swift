#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

// framing-ratios: what the framings cost beside NIO and a plain copy, in one run. Exits with 1 when a target is missed.
// With --exact only what is the same on every machine is checked: bytes on the wire, allocations, peak memory.
var report = Report()
try checkPeakMemory(&report)
try checkWireCosts(&report)
try checkAllocations(&report)
if !CommandLine.arguments.contains("--exact") {
    try checkSpeed(&report)
    try checkFlatness(&report)
}
print(report.missed == 0 ? "\nAll targets are met." : "\n\(report.missed) targets are missed.")
exit(report.missed == 0 ? 0 : 1)
