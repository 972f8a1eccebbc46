// swift-tools-version: 6.2

import PackageDescription

// A package of its own, as it only links with `-sanitize=fuzzer`. scripts/fuzz builds and runs it.
let package = Package(
    name: "ferry-fuzzing",
    platforms: [.macOS(.v26)],
    dependencies: [
        .package(name: "ferry", path: "../..", traits: ["Records", "Seal"]),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.0.0"),
    ],
    targets: [
        // Hands a program over to libFuzzer.
        .target(name: "FuzzDriver"),
        .executableTarget(
            name: "FuzzSequenced",
            dependencies: [
                "FuzzDriver",
                .product(name: "Ferry", package: "ferry"), .product(name: "FerrySequenced", package: "ferry"),
            ]),
        // Links to the sources of the two ends of a transfer, which are a program's. They take CRC-32C from FerrySequenced's.
        .executableTarget(
            name: "FuzzTransfer",
            dependencies: [
                "FuzzDriver",
                .product(name: "Ferry", package: "ferry"), .product(name: "FerrySequenced", package: "ferry"),
            ]),
        .executableTarget(
            name: "FuzzRecords",
            dependencies: [
                "FuzzDriver",
                .product(name: "Ferry", package: "ferry"), .product(name: "FerryRecords", package: "ferry"),
            ]),
        .executableTarget(
            name: "FuzzSeal",
            dependencies: [
                "FuzzDriver",
                .product(name: "Ferry", package: "ferry"), .product(name: "FerrySeal", package: "ferry"),
            ]),
        .executableTarget(
            name: "FuzzStore",
            dependencies: [
                "FuzzDriver",
                .product(name: "Ferry", package: "ferry"), .product(name: "FerryRecords", package: "ferry"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        .executableTarget(
            name: "FuzzFormats",
            dependencies: [
                "FuzzDriver",
                .product(name: "Ferry", package: "ferry"), .product(name: "FerryMdoc", package: "ferry"),
                .product(name: "FerryBTP", package: "ferry"), .product(name: "FerryPFTP", package: "ferry"),
                .product(name: "FerryBitchat", package: "ferry"), .product(name: "FerryGattlink", package: "ferry"),
                .product(name: "FerryImprov", package: "ferry"), .product(name: "FerryMeshtastic", package: "ferry"),
            ]),
        .executableTarget(
            name: "FuzzCodecs",
            dependencies: [
                "FuzzDriver",
                .product(name: "Ferry", package: "ferry"), .product(name: "FerryCBOR", package: "ferry"),
                .product(name: "FerryJSON", package: "ferry"), .product(name: "FerryPropertyList", package: "ferry"),
                .product(name: "FerryZlib", package: "ferry"),
            ]),
        .executableTarget(
            name: "FuzzDevices",
            dependencies: [
                "FuzzDriver",
                .product(name: "Ferry", package: "ferry"), .product(name: "FerrySMP", package: "ferry"),
                .product(name: "FerryUART", package: "ferry"),
            ]),
        .executableTarget(
            name: "FuzzHost",
            dependencies: [
                "FuzzDriver",
                .product(name: "BluetoothHost", package: "ferry"), .product(name: "FerryBluetooth", package: "ferry"),
            ]),
    ]
)

for target in package.targets {
    target.swiftSettings = [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
    ]
}
