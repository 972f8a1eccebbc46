@testable import CoreBluetooth
import Dispatch
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// A request's callback comes from within it: what is written before it has ended waits for it, and is counted as waiting.
func requestHasEnded(_ peripheral: CBPeripheral) async throws {
    try await until("the request has ended") { peripheral.contents.current.session?.isIdle != false }
}

/// What is there; throws when it is not.
func some<Value>(_ value: Value?) throws -> Value { try #require(value) }

/// A queue that knows whether it is the current one.
struct CheckedQueue: Sendable {
    let queue: DispatchQueue
    private let key = DispatchSpecificKey<Bool>()

    init(_ label: String, concurrent: Bool = false) {
        queue = DispatchQueue(label: label, attributes: concurrent ? .concurrent : [])
        queue.setSpecific(key: key, value: true)
    }

    var isCurrent: Bool { DispatchQueue.getSpecific(key: key) ?? false }

    /// Holds callbacks back from now on, until `queue.resume()`. A queue that empties itself into this one does so to its end,
    /// whatever is suspended meanwhile, so that is awaited first.
    func hold() {
        queue.sync {}
        queue.suspend()
    }
}

/// The lines that misuse has written since the first side was made; tests that run at the same time write theirs too.
enum MisuseLog {
    private static let journal: Journal = {
        let journal = Journal()
        Misuse.sink.current = { journal.add("\(pthread_self()) " + $0) }
        return journal
    }()

    /// Has lines written down from now on.
    static func begin() { _ = journal }

    /// How many lines have this part.
    static func count(_ part: String) -> Int { journal.all.count { $0.contains(part) } }

    /// How many lines with this part a piece of code adds on its thread.
    static func count(_ part: String, in body: () throws -> Void) rethrows -> Int {
        let thread = "\(pthread_self()) "
        let before = journal.all.count
        try body()
        return journal.all.dropFirst(before).count { $0.hasPrefix(thread) && $0.contains(part) }
    }
}

/// What an error is, as text.
func text(_ error: (any Error)?) -> String {
    switch error {
    case nil: "ok"
    case let error as CBError: "CBError " + (names[error.code] ?? "\(error.code)")
    case let error as CBATTError: "CBATTError " + (attNames[error.code] ?? "\(error.code)")
    case let error?: "\(error)"
    }
}

// Codes print as numbers, as Apple's do.
private let names: [CBError.Code: String] = [
    .invalidParameters: "invalidParameters", .invalidHandle: "invalidHandle", .notConnected: "notConnected",
    .connectionTimeout: "connectionTimeout", .alreadyAdvertising: "alreadyAdvertising",
    .connectionFailed: "connectionFailed", .unknownDevice: "unknownDevice",
]
private let attNames: [CBATTError.Code: String] = [
    .readNotPermitted: "readNotPermitted", .writeNotPermitted: "writeNotPermitted", .invalidOffset: "invalidOffset",
    .invalidAttributeValueLength: "invalidAttributeValueLength", .insufficientResources: "insufficientResources",
]

let testService = CBUUID(string: "E07F0AE8-00BB-47F5-94F4-4A7174EA3032")
let testCharacteristic = CBUUID(string: "9D534E8B-2153-4F6D-B2B0-8C68665A7274")

// Not sendable, as Apple's are not; each may be used from any thread all the same.
extension CBUUID: @unchecked Sendable {}
extension CBManager: @unchecked Sendable {}
extension CBPeer: @unchecked Sendable {}
extension CBAttribute: @unchecked Sendable {}
extension CBATTRequest: @unchecked Sendable {}
extension CBL2CAPChannel: @unchecked Sendable {}
