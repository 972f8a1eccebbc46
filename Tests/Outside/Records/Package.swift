// swift-tools-version: 6.2

import PackageDescription

// An app outside that has FerryRecords by a package of its own, because its Xcode cannot turn traits on.
let package = Package(
    name: "records",
    platforms: [.macOS(.v15), .iOS(.v18)],
    dependencies: [.package(path: "../FerryForApp")],
    targets: [
        .executableTarget(
            name: "Records", dependencies: [.product(name: "FerryForApp", package: "FerryForApp")], path: "Program",
            swiftSettings: [.swiftLanguageMode(.v5)])
    ]
)
