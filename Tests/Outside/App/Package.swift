// swift-tools-version: 6.2

import PackageDescription

// An app outside, which adds Ferry by its address and version. scripts/release package builds it from a clone with a tag.
let ferry: [Target.Dependency] = [
    .product(name: "Ferry", package: "ferry"),
    .product(name: "FerryBluetooth", package: "ferry"),
    .product(name: "FerryCoreBluetooth", package: "ferry"),
    .product(name: "FerryJSON", package: "ferry"),
    .product(name: "FerryLoopback", package: "ferry"),
    .product(name: "FerrySequenced", package: "ferry"),
]

let package = Package(
    name: "app",
    platforms: [.macOS(.v15), .iOS(.v18)],
    dependencies: [
        .package(url: "https://example.org/ferry.git", from: "0.1.0")
    ],
    targets: [
        // The same program three times: scripts/release copies it.
        .executableTarget(
            name: "Swift5", dependencies: ferry, path: "Swift5", swiftSettings: [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "Swift6", dependencies: ferry, path: "Swift6", swiftSettings: [.swiftLanguageMode(.v6)]),
        // As Xcode compiles what it has as a dependency.
        .executableTarget(
            name: "Quiet", dependencies: ferry, path: "Quiet", swiftSettings: [.unsafeFlags(["-suppress-warnings"])]),
    ]
)
