// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that nobody who uses Ferry builds what it is measured with.
let package = Package(
    name: "ferry-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "ferry", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.30.0"),
        .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
    ],
    targets: [
        // Counts every allocation of the calling thread.
        .target(name: "CAllocationCounter"),

        // What is measured, shared by both ways of measuring.
        .target(
            name: "FramingWorkloads",
            dependencies: [
                "CAllocationCounter",
                .product(name: "Ferry", package: "ferry"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOExtras", package: "swift-nio-extras"),
            ]
        ),

        // `swift run -c release framing-ratios`: ratios in one run, and whether they meet their targets.
        .executableTarget(name: "framing-ratios", dependencies: ["FramingWorkloads"], path: "Sources/FramingRatios"),

        // `swift package benchmark`: the same workloads over time.
        .executableTarget(
            name: "FramingBenchmarks",
            dependencies: ["FramingWorkloads", .product(name: "Benchmark", package: "benchmark")],
            path: "Benchmarks/Framing",
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        ),
    ]
)

for target in package.targets where target.name != "CAllocationCounter" {
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
