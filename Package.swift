// swift-tools-version: 6.2

import PackageDescription

// What targets need with traits only.
let gateway: [Target.Dependency] =
    [.target(name: "FerryRecords", condition: .when(traits: ["Records"]))]
    + ["FerryGateway", "FerryNATS"].map { .target(name: $0, condition: .when(traits: ["NATS"])) }
func observing(_ products: (String, String)...) -> [Target.Dependency] {
    products.map { .product(name: $0.0, package: $0.1, condition: .when(traits: ["Observability"])) }
}
let observability = observing(
    ("Logging", "swift-log"), ("CoreMetrics", "swift-metrics"), ("Tracing", "swift-distributed-tracing"))

// The floors of the house, the lowest first. A module may lean on its own floor and on lower ones, and what it leans on is listed
// below; scripts/lint reads both. It is in the folder of its floor: its tests too, or, of what is in Sources, on the same floor of
// Tests. What `plugin` adds at the end names its floor there.
let floors: KeyValuePairs = [
    "Sources/Core": ["Ferry", "FerryDigest", "CFerryChecksum"],
    "Sources/Bluetooth": ["FerryBluetooth", "BluetoothHost"],
    "Sources/Fleet": ["FerryFleet"],
    "Sources/Testing": ["FerryTesting", "FerrySimulator"],
    "Plugins/Codecs": ["FerryJSON", "FerryPropertyList", "FerryProtobuf"],
    "Plugins/Compression": ["CZlib", "FerryZlib"],
    "Plugins/Framings": ["FerrySequenced"],
    "Plugins/Sealing": ["FerrySeal"],
    "Plugins/Transports": ["FerryLoopback", "FerryHCI", "CSystemd", "FerryBlueZ"],
    "Plugins/Apple": ["CCoreBluetooth", "CoreBluetooth", "FerryVirtualBluetooth", "FerryCoreBluetooth"],
    "Plugins/Languages": ["CFerry", "FerryC"],
    "Plugins/Services": ["FerryRecords", "CNATS", "FerryNATS", "CMosquitto", "FerryMQTT", "FerryHTTP"],
    "Sources/Gateway": ["FerryGateway", "FerryObservability"],
    "Sources/Programs": ["FerryTransports", "FerryLab", "FerryCommand"],
]

let deque = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
// For `ArraySpan.swift`, which lends an array's bytes where Apple's systems lack `Array.span`. swift-collections needs it too.
let lifetimes = [SwiftSetting.enableExperimentalFeature("Lifetimes")]

// One table of targets; arrows run inward only (see Documentation/Design.md).
//
//     plugin -> FerryBluetooth -> Ferry
//
// A target may import what is listed here and nothing else: the build runs with
// `--explicit-target-dependency-import-check error`.
let package = Package(
    name: "ferry",
    // The libraries compile for these; Mutex and UInt128 need them. On tvOS and watchOS FerryCoreBluetooth is a central only.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Ferry", targets: ["Ferry"]),
        .library(name: "FerryBluetooth", targets: ["FerryBluetooth"]),
        .library(name: "FerryTesting", targets: ["FerryTesting"]),
        .library(name: "FerrySequenced", targets: ["FerrySequenced"]),
        .library(name: "FerryJSON", targets: ["FerryJSON"]),
        .library(name: "FerryPropertyList", targets: ["FerryPropertyList"]),
        .library(name: "FerryProtobuf", targets: ["FerryProtobuf"]),
        .library(name: "FerryZlib", targets: ["FerryZlib"]),
        .library(name: "FerryLoopback", targets: ["FerryLoopback"]),
        .library(name: "FerrySimulator", targets: ["FerrySimulator"]),
        .library(name: "FerryFleet", targets: ["FerryFleet"]),
        // A library product leaves no file of its own name behind, so `ferry` and `Ferry` can stand side by side also
        // where file names differ in case only; the target has another name because its folder would clash.
        .executable(name: "ferry", targets: ["FerryCommand"]),
        .library(name: "BluetoothHost", targets: ["BluetoothHost"]),
        .library(name: "FerryHCI", targets: ["FerryHCI"]),
        .library(name: "FerryBlueZ", targets: ["FerryBlueZ"]),
        .library(name: "FerryRecords", targets: ["FerryRecords"]),
        .library(name: "FerryNATS", targets: ["FerryNATS"]),
        .library(name: "FerryMQTT", targets: ["FerryMQTT"]),
        .library(name: "FerryHTTP", targets: ["FerryHTTP"]),
        .library(name: "FerryGateway", targets: ["FerryGateway"]),
        .library(name: "FerrySeal", targets: ["FerrySeal"]),
        .library(name: "FerryObservability", targets: ["FerryObservability"]),
        .library(name: "FerryCoreBluetooth", targets: ["FerryCoreBluetooth"]),
        .executable(name: "business-card", targets: ["BusinessCard"]),
        .executable(name: "logger", targets: ["Logger"]),
        .executable(name: "virtual-controllers", targets: ["VirtualControllersCommand"]),
        .executable(name: "hci-throughput", targets: ["HCIThroughput"]),
        .executable(name: "seal-speed", targets: ["SealSpeed"]),
    ],
    traits: [
        // The LE host over HCI channels; off by default, for SwiftNIO slows every build.
        .trait(
            name: "HCI", description: "FerryHCI: an own LE host over HCI channels, through SwiftNIO and swift-crypto"),
        // Needs libsystemd-dev; Linux only.
        .trait(name: "BlueZ", description: "FerryBlueZ: org.bluez on the system bus, through libsystemd's sd-bus"),
        // Needs SQLite's header (libsqlite3-dev on Linux).
        .trait(name: "Records", description: "FerryRecords: an outbox and an inbox on disk, through GRDB and SQLite"),
        // Needs libnats-dev.
        .trait(name: "NATS", description: "FerryNATS: streams and buckets of a nats-server, through libnats"),
        // Needs libmosquitto-dev.
        .trait(name: "MQTT", description: "FerryMQTT: the outlet to MQTT brokers, through libmosquitto"),
        .trait(name: "HTTP", description: "FerryHTTP: the outlet to HTTP servers, through async-http-client"),
        .trait(
            name: "Seal",
            description: "FerrySeal: sealed channels and records, keys and invitations, through swift-crypto"),
        .trait(name: "Protobuf", description: "FerryProtobuf: messages as Protocol Buffers, through swift-protobuf"),
        .trait(name: "Observability", description: "FerryObservability: swift-log, -metrics and -distributed-tracing"),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.2.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.0.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.3.0"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
    ],
    targets: [
        // The core: channel, the five seams, framings. No Foundation, no I/O, no Bluetooth.
        .target(name: "Ferry", dependencies: [deque], swiftSettings: lifetimes),

        // Bluetooth's vocabulary, the adapter seam, and the GATT link and transport over it.
        .target(name: "FerryBluetooth", dependencies: ["Ferry", deque]),

        // A Bluetooth LE host as protocol logic: no I/O, no clock, nothing of Ferry's.
        .target(name: "BluetoothHost", dependencies: [deque], swiftSettings: lifetimes),

        // Conformance kits that any plugin can run.
        .target(name: "FerryTesting", dependencies: ["Ferry", "FerryBluetooth", "FerryFleet", deque]),

        // A model of the radio in virtual time.
        .target(name: "FerrySimulator", dependencies: ["Ferry", "FerryBluetooth", deque]),

        // SHA-256 for formats of devices.
        .target(name: "FerryDigest"),

        // Who owns a peer among many gateways, as values.
        .target(
            name: "FerryFleet", dependencies: ["Ferry", .product(name: "HeapModule", package: "swift-collections")]),

        // CRC-32C, by the processor's instruction where there is one.
        .target(name: "CFerryChecksum"),

        // Plugins: each depends on seams, and on another plugin only where Documentation/Design.md says why.
        .target(
            name: "FerrySequenced",
            dependencies: ["Ferry", "CFerryChecksum", deque], exclude: ["Tests"]
        ),
        // The framings for C: the header, and what implements it. scripts/firmware makes the library.
        .target(name: "CFerry"),
        .target(
            name: "FerryC", dependencies: ["CFerry", "Ferry", "FerrySequenced"],
            exclude: ["Tests"]),
        .target(name: "FerryJSON", dependencies: ["Ferry"], exclude: ["Tests"]),
        .target(name: "FerryPropertyList", dependencies: ["Ferry"], exclude: ["Tests"]),
        .target(
            name: "FerryProtobuf",
            dependencies: [
                "Ferry",
                .product(name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Protobuf"])),
            ], exclude: ["Tests"]),
        .systemLibrary(
            name: "CZlib", pkgConfig: "zlib",
            providers: [.apt(["libz-dev"]), .brew(["zlib"])]
        ),
        .target(name: "FerryZlib", dependencies: ["Ferry", "CZlib"], exclude: ["Tests"]),
        .target(
            name: "FerryLoopback",
            dependencies: ["Ferry", "FerryBluetooth", deque], exclude: ["Tests"]
        ),
        .target(
            name: "FerryRecords",
            dependencies: [
                "Ferry", .target(name: "CFerryChecksum", condition: .when(traits: ["Records"])),
                .product(name: "DequeModule", package: "swift-collections", condition: .when(traits: ["Records"])),
                .product(name: "HeapModule", package: "swift-collections", condition: .when(traits: ["Records"])),
                .product(name: "GRDBSQLite", package: "GRDB.swift", condition: .when(traits: ["Records"])),
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Records"])),
            ], exclude: ["Tests"]
        ),

        // Sealed channels and records, keys and invitations.
        .target(
            name: "FerrySeal",
            dependencies: [
                "Ferry",
                .product(name: "DequeModule", package: "swift-collections", condition: .when(traits: ["Seal"])),
                .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Seal"])),
            ], exclude: ["Tests"]
        ),

        .systemLibrary(
            name: "CNATS", pkgConfig: "libnats",
            providers: [.apt(["libnats-dev"]), .brew(["cnats"])]
        ),
        .target(
            name: "FerryNATS",
            dependencies: [
                "Ferry",
                .product(name: "DequeModule", package: "swift-collections", condition: .when(traits: ["NATS"])),
                .target(name: "CNATS", condition: .when(traits: ["NATS"])),
            ], exclude: ["Tests"]
        ),

        .systemLibrary(
            name: "CMosquitto", pkgConfig: "libmosquitto",
            providers: [.apt(["libmosquitto-dev"]), .brew(["mosquitto"])]
        ),
        .target(
            name: "FerryMQTT",
            dependencies: ["Ferry", "FerryFleet", .target(name: "CMosquitto", condition: .when(traits: ["MQTT"]))],
            exclude: ["Tests"]
        ),

        .target(
            name: "FerryHTTP",
            dependencies: [
                "Ferry", "FerryFleet",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: .when(traits: ["HTTP"])),
                .product(name: "DequeModule", package: "swift-collections", condition: .when(traits: ["HTTP"])),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["HTTP"])),
            ]
                + ["NIOCore", "NIOHTTP1", "NIOPosix"].map {
                    .product(name: $0, package: "swift-nio", condition: .when(traits: ["HTTP"]))
                }, exclude: ["Tests"]),

        // Where records meet a stream: the one place that knows both plugins.
        .target(
            name: "FerryGateway",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryFleet", "FerryNATS", "FerryRecords",
                .product(
                    name: "DequeModule", package: "swift-collections", condition: .when(traits: ["NATS", "Records"])),
            ]
        ),

        // What happens in links, stores and gateways, as logs, metrics and traces. Nothing but the program leans on it.
        .target(
            name: "FerryObservability",
            dependencies: ["Ferry", .target(name: "FerryFleet", condition: .when(traits: ["NATS"]))]
                + gateway + observability),

        // Every transport by the name that people type: the one place where the programs meet a new one.
        .target(
            name: "FerryTransports",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryLoopback", "FerrySocket",
                .target(name: "FerryHCI", condition: .when(traits: ["HCI"])),
                .target(name: "FerryBlueZ", condition: .when(traits: ["BlueZ"])),
                .target(name: "FerrySeal", condition: .when(traits: ["Seal"])),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),

        // Measures links, compares codecs and advises, without a terminal.
        .target(
            name: "FerryLab",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryBTP", "FerryBitchat", "FerryCBOR", "FerryGattlink", "FerryJSON",
                "FerryLoopback", "FerryMdoc", "FerryMeshtastic", "FerryPFTP", "FerryPropertyList", "FerrySMP",
                "FerrySequenced", "FerrySimulator", "FerryUART", "FerryZlib", deque,
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ]),

        // The command line.
        .executableTarget(
            name: "FerryCommand",
            dependencies: [
                "CFerryChecksum", "Ferry", "FerryBluetooth", "FerryFleet", "FerryLab", "FerrySequenced", "FerryBitchat",
                "FerryJSON", "FerrySMP", "FerrySimulator", "FerryTransports", "FerryUART", "FerryZlib",
                .target(name: "FerryHCI", condition: .when(traits: ["HCI"])),
                .target(name: "FerryMQTT", condition: .when(traits: ["MQTT"])),
                .target(name: "FerryHTTP", condition: .when(traits: ["HTTP"])),
                .target(name: "FerrySeal", condition: .when(traits: ["Seal"])),
                .target(name: "FerryObservability", condition: .when(traits: ["Observability"])),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                // Runs a peer's programs.
                .product(name: "Subprocess", package: "swift-subprocess", condition: .when(traits: ["Records"])),
                .product(
                    name: "SystemPackage", package: "swift-system",
                    condition: .when(platforms: [.linux], traits: ["Records"])),
            ] + gateway + observing(("Logging", "swift-log"))
                // Figures over HTTP.
                + ["NIOCore", "NIOPosix", "NIOHTTP1"].map {
                    .product(name: $0, package: "swift-nio", condition: .when(traits: ["NATS"]))
                }
        ),
        .target(
            name: "FerryHCI",
            dependencies: [
                "Ferry", "FerryBluetooth", "BluetoothHost",
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["HCI"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["HCI"])),
                .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["HCI"])),
                .product(name: "CryptoExtras", package: "swift-crypto", condition: .when(traits: ["HCI"])),
            ], exclude: ["Tests"]
        ),

        .systemLibrary(
            name: "CSystemd", pkgConfig: "libsystemd",
            providers: [.apt(["libsystemd-dev"])]
        ),
        .target(
            name: "FerryBlueZ",
            dependencies: [
                "Ferry", "FerryBluetooth",
                .product(name: "DequeModule", package: "swift-collections", condition: .when(traits: ["BlueZ"])),
                .target(name: "CSystemd", condition: .when(platforms: [.linux], traits: ["BlueZ"])),
            ], exclude: ["Tests"]
        ),

        // Apple's framework as an adapter; elsewhere over the module of the same name (below).
        .target(
            name: "FerryCoreBluetooth", dependencies: ["Ferry", "FerryBluetooth"],
            exclude: ["Tests"]),

        // The business-card exchange: where people start.
        .executableTarget(
            name: "BusinessCard",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerrySequenced", "FerryJSON", "FerryCBOR", "FerryPropertyList", "FerryZlib",
                "FerryLoopback", "FerryTransports",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Examples/BusinessCard"
        ),

        // The logic of an app that exchanges contact cards; its views are in Examples/PhoneCard too, for Xcode.
        .target(
            name: "PhoneCardLogic", dependencies: ["Ferry", "FerryBluetooth", "FerryJSON"],
            path: "Examples/PhoneCard/Logic"),

        // Records between a thermometer that is away half of the time and a collector.
        .executableTarget(
            name: "Logger",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryLoopback", "FerryRecords",
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Records"])),
            ],
            path: "Examples/Logger"
        ),

        // The README's ten lines, kept true by being built and run.
        .executableTarget(
            name: "Embedding", dependencies: ["Ferry", "FerryBluetooth", "FerryJSON", "FerryLoopback"],
            path: "Examples/Embedding"
        ),

        // The tutorial's program.
        .executableTarget(
            name: "Diary",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerrySequenced", "FerryRecords",
                .target(name: "FerryBlueZ", condition: .when(traits: ["BlueZ"])),
            ],
            path: "Examples/Diary"
        ),

        // Two controllers for tests of the host, and for other processes.
        .target(name: "VirtualControllers", dependencies: ["Ferry"], path: "Tests/VirtualControllers"),
        .executableTarget(
            name: "VirtualControllersCommand",
            dependencies: [
                "VirtualControllers",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["HCI"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["HCI"])),
            ],
            path: "Tests/VirtualControllersCommand"
        ),

        // What scripts/bench hci measures with.
        .executableTarget(
            name: "HCIThroughput",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryHCI",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/HCIThroughput"
        ),

        // A process that appends, exchanges and takes in records, for tests that end it.
        .executableTarget(
            name: "RecordsWorker",
            dependencies: [
                "Ferry", "FerryRecords",
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Records"])),
            ],
            path: "Tests/RecordsWorker", exclude: ["faults.c"]
        ),

        // What scripts/bench gateway measures with.
        .executableTarget(
            name: "GatewayBench",
            dependencies: [
                "Ferry", "FerryGateway", "FerryNATS", "FerryRecords", "FerrySocket", "TestSupport",
                .target(name: "CNATS", condition: .when(traits: ["NATS"])),
                .target(name: "FerryObservability", condition: .when(traits: ["Observability"])),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ] + observing(("Logging", "swift-log")),
            path: "Tests/GatewayBench"
        ),

        // Sealing beside swift-crypto's own speed.
        .executableTarget(
            name: "SealSpeed",
            dependencies: [
                "Ferry", "FerrySeal",
                .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Seal"])),
            ],
            path: "Tests/SealSpeed"
        ),

        // What several test targets share: a journal, a rig of channels, tags.
        .target(
            name: "TestSupport", dependencies: ["CTestSupport", "Ferry", "FerryBluetooth", "FerryTesting"],
            path: "Tests/TestSupport"),
        .target(name: "CTestSupport", path: "Tests/CTestSupport"),

        // A gateway with a peer, a server, and an observer that writes down.
        .target(
            name: "GatewayRig",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryGateway", "FerryLoopback", "FerryNATS", "FerryRecords", "TestSupport",
            ],
            path: "Tests/GatewayRig"),

        .testTarget(name: "FerryTests", dependencies: ["Ferry", "FerryTesting"]),
        .testTarget(name: "FerrySequencedTests", dependencies: ["Ferry", "FerryTesting", "FerrySequenced"]),
        .testTarget(
            name: "FerryCTests", dependencies: ["CFerry", "FerryC", "Ferry", "FerryTesting", "FerrySequenced"]),
        .testTarget(
            name: "FerrySealTests",
            dependencies: [
                "Ferry", "FerryTesting", "FerrySequenced", "FerrySeal", "FerrySocket",
                .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Seal"])),
            ], exclude: ["Vectors"]),
        .testTarget(name: "FerryBluetoothTests", dependencies: ["Ferry", "FerryBluetooth", "FerryTesting"]),
        .testTarget(name: "BluetoothHostTests", dependencies: ["BluetoothHost", "VirtualControllers", "FerryTesting"]),
        .testTarget(name: "FerryJSONTests", dependencies: ["Ferry", "FerryTesting", "FerryJSON"]),
        .testTarget(name: "FerryPropertyListTests", dependencies: ["Ferry", "FerryTesting", "FerryPropertyList"]),
        .testTarget(
            name: "FerryRecordsTests",
            dependencies: [
                "Ferry", "FerryTesting", "FerrySequenced", "FerryRecords", "RecordsWorker",
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Records"])),
            ]),
        .testTarget(name: "FerryNATSTests", dependencies: ["Ferry", "FerryNATS"]),
        .testTarget(name: "FerryMQTTTests", dependencies: ["Ferry", "FerryFleet", "FerryMQTT", "FerryTesting"]),
        .testTarget(
            name: "FerryHTTPTests", dependencies: ["Ferry", "FerryFleet", "FerryHTTP", "FerryTesting"]),
        .testTarget(
            name: "FerryGatewayTests",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryFleet", "FerryGateway", "FerryLoopback", "FerryNATS", "FerryRecords",
                "FerryTesting", "GatewayRig", "RecordsWorker",
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Records"])),
            ]),
        .testTarget(
            name: "FerryObservabilityTests",
            dependencies: ["Ferry", "FerryFleet", "FerryObservability", "FerryTesting", "GatewayRig"]
                + gateway + observability
                + observing(
                    ("InMemoryLogging", "swift-log"), ("MetricsTestKit", "swift-metrics"),
                    ("InMemoryTracing", "swift-distributed-tracing"))),
        // What articles show, so that it is built.
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryTesting", "FerryJSON", "FerryLoopback", "FerrySequenced", "FerryZlib",
                "Diary", "BluetoothHost",
                .target(name: "FerryObservability", condition: .when(traits: ["Observability"])),
                .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Records"])),
                .target(name: "FerryHCI", condition: .when(traits: ["HCI"])),
                .target(name: "FerryBlueZ", condition: .when(traits: ["BlueZ"])),
            ] + gateway + observability, exclude: ["pages.py"]),
        .testTarget(
            name: "FerryProtobufTests",
            dependencies: [
                "Ferry", "FerryTesting", "FerryProtobuf",
                .product(name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(traits: ["Protobuf"])),
            ], exclude: ["reading.proto"]),
        .testTarget(name: "FerryDigestTests", dependencies: ["FerryDigest"]),
        .testTarget(name: "FerryZlibTests", dependencies: ["Ferry", "FerryTesting", "FerryZlib"]),
        .testTarget(
            name: "FerryLoopbackTests", dependencies: ["Ferry", "FerryBluetooth", "FerryTesting", "FerryLoopback"]),
        .testTarget(
            name: "FerryHCITests",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryTesting", "FerrySequenced", "BluetoothHost", "FerryHCI",
                "FerryMdoc", "FerryBTP", "FerryBitchat", "FerryGattlink", "FerryImprov", "FerryMeshtastic", "FerryPFTP",
                "FerrySMP", "FerryUART",
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["HCI"])),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: .when(traits: ["HCI"])),
            ]),
        .testTarget(
            name: "FerryBlueZTests",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryTesting", "FerrySequenced", "FerryJSON", "FerryPropertyList",
                "FerryZlib", "FerryBlueZ", "FerryRecords", "Diary",
                .target(name: "CSystemd", condition: .when(platforms: [.linux], traits: ["BlueZ"])),
            ]),
        // Two stacks at once, in the virtual machine.
        .testTarget(
            name: "MixedTransportTests",
            dependencies: ["Ferry", "FerryBluetooth", "FerryTesting", "FerrySequenced", "FerryHCI", "FerryBlueZ"]),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryTesting", "FerrySequenced", "FerryJSON", "FerryPropertyList",
                "FerryZlib", "FerryLoopback", "FerrySocket",
            ]
        ),
        .testTarget(
            name: "FerrySimulatorTests",
            dependencies: ["Ferry", "FerryBluetooth", "FerryLoopback", "FerrySimulator"]),
        .testTarget(name: "FerryFleetTests", dependencies: ["Ferry", "FerryTesting", "FerryFleet"]),
        .testTarget(
            name: "FerryTransportsTests",
            dependencies: [
                "Ferry", "FerryBluetooth", "FerryTesting", "FerryTransports",
                .target(name: "FerrySeal", condition: .when(traits: ["Seal"])),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .testTarget(
            name: "FerryLabTests",
            dependencies: [
                "Ferry", "FerryJSON", "FerryLab", "FerrySequenced", "FerrySimulator", "FerryZlib",
            ]),
        .testTarget(
            name: "FerryCommandTests",
            dependencies: [
                "FerryCommand", "Ferry", "FerryBluetooth", "FerryFleet", "FerryLab", "FerryTesting", "FerrySequenced",
                "FerryLoopback", "FerrySimulator", "FerryTransports",
                .target(name: "FerrySeal", condition: .when(traits: ["Seal"])),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + gateway + observing(("Logging", "swift-log"))
        ),
        .testTarget(
            name: "BusinessCardTests",
            dependencies: [
                "BusinessCard", "Ferry", "FerryBluetooth", "FerryLoopback", "FerryTesting", "FerryTransports",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
    ]
)

// The module CoreBluetooth must not exist in a build for Apple's systems: the compiler finds it before Apple's framework. SwiftPM
// knows the host here and not the target, so the host decides. FERRY_CORE_BLUETOOTH=1 adds it on a Mac that compiles for Linux;
// FERRY_CORE_BLUETOOTH=0 removes it on a Linux machine that compiles for iOS.
#if canImport(Darwin)
    let hasCoreBluetooth = Context.environment["FERRY_CORE_BLUETOOTH"] == "1"
#else
    let hasCoreBluetooth = Context.environment["FERRY_CORE_BLUETOOTH"] != "0"
#endif
// Apple's API over the virtual radio under another name, for simulators: there these are the sources of CoreBluetooth themselves.
// Between processes the radio is two or more controllers in another one.
let overRadio: [Target.Dependency] = [
    "CCoreBluetooth", "Ferry", "FerryBluetooth", "FerryLoopback", deque,
    .target(name: "FerryHCI", condition: .when(traits: ["HCI"])),
]
package.products.append(.library(name: "FerryVirtualBluetooth", targets: ["FerryVirtualBluetooth"]))
if !hasCoreBluetooth {
    package.targets += [
        .target(name: "CCoreBluetooth"),
        .target(
            name: "FerryVirtualBluetooth", dependencies: overRadio, path: "Plugins/Apple/CoreBluetooth",
            exclude: ["Tests"]),
    ]
}
if hasCoreBluetooth {
    // Apple's API, on systems that lack it: the outermost layer, so it may lean on the loopback as its default adapter.
    package.products.append(.library(name: "CoreBluetooth", targets: ["CoreBluetooth"]))
    package.targets += [
        // The codes of its errors, which must be open enumerations.
        .target(name: "CCoreBluetooth"),
        .target(name: "CoreBluetooth", dependencies: overRadio, exclude: ["Tests"]),
        .target(name: "FerryVirtualBluetooth", dependencies: ["CoreBluetooth"]),
        .testTarget(
            name: "CoreBluetoothTests",
            dependencies: [
                "CoreBluetooth", "FerryVirtualBluetooth", "CoreBluetoothSwift5Programs", "CoreBluetoothSwift6Programs",
                "Ferry",
                "FerryBluetooth", "FerryTesting", "FerrySequenced", "FerryLoopback", "FerrySMP",
            ]
        ),
        // Programs as tutorials write them: built with a language mode and no other setting.
        .target(
            name: "CoreBluetoothSwift5Programs", dependencies: ["CoreBluetooth"],
            path: "Tests/CoreBluetoothSwift5Programs", swiftSettings: [.swiftLanguageMode(.v5)]
        ),
        .target(
            name: "CoreBluetoothSwift6Programs", dependencies: ["CoreBluetooth"],
            path: "Tests/CoreBluetoothSwift6Programs", swiftSettings: [.swiftLanguageMode(.v6)]
        ),
    ]
    package.targets.first { $0.name == "FerryCoreBluetooth" }?.dependencies.append(
        .target(name: "CoreBluetooth", condition: .when(platforms: [.linux, .android, .windows])))
    package.targets += [
        // The adapter for apps over another adapter, as the tests of both need it.
        .target(
            name: "CoreBluetoothRig",
            dependencies: ["CoreBluetooth", "FerryBluetooth", "FerryCoreBluetooth", "FerryTesting", "TestSupport"],
            path: "Tests/CoreBluetoothRig"),
        .testTarget(
            name: "FerryCoreBluetoothTests",
            dependencies: [
                "CoreBluetooth", "CoreBluetoothRig", "Ferry", "FerryBluetooth", "FerryCoreBluetooth", "FerryJSON",
                "FerryLoopback", "FerrySequenced", "FerryTesting",
            ]),
        // Phones by Apple's API.
        .testTarget(
            name: "PhoneCardLogicTests",
            dependencies: ["CoreBluetoothRig", "Ferry", "FerryBluetooth", "FerryLoopback", "PhoneCardLogic"],
            path: "Examples/PhoneCard/Tests"),
    ]
    package.targets.first { $0.name == "FerryHCITests" }?.dependencies += [
        "BusinessCard", "CoreBluetooth", "CoreBluetoothRig", "CoreBluetoothSwift5Programs", "FerryCoreBluetooth",
        "FerryLoopback", "FerryVirtualBluetooth",
    ]
    package.targets.first { $0.name == "MixedTransportTests" }?.dependencies.append("CoreBluetoothRig")
}

// A plugin with nothing but the seams below it: a folder with its sources, its tests in the folder Tests of it, and one line.
extension Package {
    func plugin(_ name: String, in folder: String) {
        if folder.hasPrefix("Plugins/") { products.append(.library(name: name, targets: [name])) }
        targets += [
            .target(
                name: name, dependencies: ["Ferry", "FerryBluetooth"], path: "\(folder)/\(name)", exclude: ["Tests"]),
            .testTarget(
                name: "\(name)Tests",
                dependencies: ["Ferry", "FerryBluetooth", "FerryTesting", "FerryLoopback", .byName(name: name)],
                path: "\(folder)/\(name)/Tests"),
        ]
    }
}
package.plugin("FerrySocket", in: "Plugins/Transports")
package.plugin("FerryCBOR", in: "Plugins/Codecs")
package.plugin("FerryBitchat", in: "Plugins/Framings")
package.plugin("FerryBTP", in: "Plugins/Framings")
package.plugin("FerryGattlink", in: "Plugins/Framings")
package.plugin("FerryImprov", in: "Plugins/Framings")
package.plugin("FerryMdoc", in: "Plugins/Framings")
package.plugin("FerryMeshtastic", in: "Plugins/Framings")
package.plugin("FerryPFTP", in: "Plugins/Framings")
package.plugin("FerrySMP", in: "Plugins/Framings")
package.plugin("FerryUART", in: "Plugins/Framings")
package.plugin("FerryHex", in: "Tests/Exercises")
package.plugin("FerryFlagged", in: "Tests/Exercises")
package.plugin("FerryNearby", in: "Tests/Exercises")

// The bodies of SMP's messages are CBOR.
package.targets.first { $0.name == "FerrySMP" }?.dependencies.append("FerryCBOR")
for name in ["FerryMdoc", "FerrySMP"] {
    package.targets.first { $0.name == name }?.dependencies.append("FerryDigest")
}
package.targets.first { $0.name == "FerrySMPTests" }?.dependencies.append("FerrySimulator")

for (floor, names) in floors {
    for target in package.targets where target.path == nil {
        if names.contains(target.name) { target.path = "\(floor)/\(target.name)" }
        guard target.type == .test, let name = names.first(where: { "\($0)Tests" == target.name }) else { continue }
        target.path =
            floor.hasPrefix("Plugins/")
            ? "\(floor)/\(name)/Tests" : "Tests\(floor.dropFirst("Sources".count))/\(target.name)"
    }
}

// What is built anew for some tests is built without the others (scripts/sanitize).
if let tests = Context.environment["FERRY_TESTS"] {
    let names = tests.split(separator: ",").map(String.init)
    package.targets.removeAll { $0.type == .test && !names.contains($0.name) }
}

for target in package.targets where target.type == .test { target.dependencies.append("TestSupport") }

for target in package.targets where target.type != .system && !target.name.hasSuffix("Programs") {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .swiftLanguageMode(.v6),
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        ]
}

// Warnings are errors in the project's own builds: scripts/library sets FERRY_STRICT. An app's build must not have this setting:
// Xcode compiles dependencies with -suppress-warnings, and the compiler refuses both (swift-package-manager issues 9517, 10192).
if Context.environment["FERRY_STRICT"] == "1" {
    for target in package.targets where target.type != .system && !target.name.hasSuffix("Programs") {
        target.swiftSettings = (target.swiftSettings ?? []) + [.treatAllWarnings(as: .error)]
        // The simulator computes more of the tests' time than all else, and is small: optimised, its assertions kept.
        if target.name == "FerrySimulator" {
            target.swiftSettings? += [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]
        }
    }
}
