// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that nobody who uses Ferry builds what it is measured beside.
let package = Package(
    name: "ferry-benchmarks",
    platforms: [.macOS(.v26)],
    dependencies: [
        .package(name: "ferry", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.30.0"),
    ],
    targets: [
        // Counts every allocation of the calling thread.
        .target(name: "CMemoryCounter"),

        // Counts every byte that the calling thread copies, in programs that depend on it.
        .target(name: "CCopyCounter"),

        // What is measured.
        .target(
            name: "Workloads",
            dependencies: [
                "CMemoryCounter",
                .product(name: "Ferry", package: "ferry"),
                .product(name: "FerrySequenced", package: "ferry"),
                .product(name: "FerryBluetooth", package: "ferry"),
                .product(name: "FerryLoopback", package: "ferry"),
                .product(name: "FerrySimulator", package: "ferry"),
                .product(name: "FerryBTP", package: "ferry"),
                .product(name: "FerryMdoc", package: "ferry"),
                .product(name: "FerryPFTP", package: "ferry"),
                .product(name: "FerrySMP", package: "ferry"),
                .product(name: "FerryUART", package: "ferry"),
            ]
        ),

        // What it is measured beside.
        .target(
            name: "Peers",
            dependencies: [
                "Workloads",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOExtras", package: "swift-nio-extras"),
            ]
        ),

        // `swift run -c release exact`: what is the same on every machine, against stored thresholds.
        .executableTarget(name: "exact", dependencies: ["Workloads", "CCopyCounter"], path: "Sources/Exact"),

        // `swift run -c release host-throughput`: what the LE host costs by itself.
        .executableTarget(
            name: "host-throughput",
            dependencies: [
                .product(name: "BluetoothHost", package: "ferry"), .product(name: "Ferry", package: "ferry"),
            ],
            path: "Sources/HostThroughput"),

        // `swift run -c release ratios`: speed beside the peers' in one run.
        .executableTarget(
            name: "ratios",
            dependencies: [
                "Workloads", "Peers", .product(name: "FerryCBOR", package: "ferry"),
                .product(name: "FerryJSON", package: "ferry"),
            ],
            path: "Sources/Ratios"),
    ]
)

for target in package.targets where !target.name.hasPrefix("C") {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .swiftLanguageMode(.v6),
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            .treatAllWarnings(as: .error),
        ]
}
