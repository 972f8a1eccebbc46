// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "FerryForApp",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [.library(name: "FerryForApp", targets: ["FerryForApp"])],
    dependencies: [
        .package(url: "https://example.org/ferry.git", from: "0.1.0", traits: ["Records"])
    ],
    targets: [
        .target(
            name: "FerryForApp",
            dependencies: [
                .product(name: "Ferry", package: "ferry"),
                .product(name: "FerryRecords", package: "ferry"),
            ])
    ]
)
