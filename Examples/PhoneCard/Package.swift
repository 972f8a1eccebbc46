// swift-tools-version: 6.2

import PackageDescription

// For an app in Xcode: see README.md in this folder.
let package = Package(
    name: "PhoneCard",
    platforms: [.iOS(.v18)],
    products: [
        .library(name: "PhoneCard", targets: ["PhoneCardViews"]),
        // Without SwiftUI: for other systems, and for views of another kind.
        .library(name: "PhoneCardLogic", targets: ["PhoneCardLogic"]),
    ],
    dependencies: [.package(name: "ferry", path: "../..")],
    targets: [
        .target(
            name: "PhoneCardLogic",
            dependencies: ["Ferry", "FerryBluetooth", "FerryJSON"].map { .product(name: $0, package: "ferry") },
            path: "Logic"),
        .target(
            name: "PhoneCardViews",
            dependencies: [
                "PhoneCardLogic", .product(name: "Ferry", package: "ferry"),
                .product(name: "FerryBluetooth", package: "ferry"),
                .product(name: "FerryCoreBluetooth", package: "ferry"),
            ], path: "Views"),
    ]
)
for target in package.targets {
    target.swiftSettings = [
        .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"), .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
}
