// swift-tools-version: 6.2

import PackageDescription

// An app outside that has the logic of Examples/PhoneCard from that folder, as Xcode has it. scripts/release package puts the clone
// beside this folder.
let package = Package(
    name: "phones",
    platforms: [.macOS(.v15), .iOS(.v18)],
    dependencies: [.package(path: "../ferry/Examples/PhoneCard"), .package(path: "../ferry")],
    targets: [
        .executableTarget(
            name: "Phones",
            dependencies: [
                .product(name: "PhoneCardLogic", package: "PhoneCard"),
                .product(name: "FerryLoopback", package: "ferry"),
            ], path: "Program", swiftSettings: [.swiftLanguageMode(.v6)])
    ]
)
