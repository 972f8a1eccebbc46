import CoreBluetooth
import Foundation
import Synchronization

/// The well-known transfer as plain code has it: chunks to whoever is subscribed, then "EOM".
final class PlainTransfer: Sendable {
    /// How long a chunk is.
    enum Chunk { case twenty, askedOnce, askedEachTime }

    private struct State {
        var index = 0
        var isEnding = false
        var isDone = false
        var accepted = 0
        var refusals = 0
        var length: Int?
    }
    private let state = Mutex(State())
    private let message: Data
    private let chunk: Chunk
    let pair: Pair
    let peripheral: PeripheralSide
    let central: CentralSide

    init(_ pair: Pair, _ message: Data, chunk: Chunk = .twenty) {
        self.pair = pair
        self.message = message
        self.chunk = chunk
        peripheral = PeripheralSide(on: pair.near)
        central = CentralSide(on: pair.far)
        peripheral.onSubscribe = { [weak self] _ in self?.send() }
        peripheral.onReady = { [weak self] in self?.send() }
    }

    var accepted: Int { state.withLock { $0.accepted } }
    var refusals: Int { state.withLock { $0.refusals } }
    /// What the receiver has before the first "EOM".
    var received: Data {
        Data(central.values.withLock { $0 }.prefix { $0 != Data("EOM".utf8) }.joined())
    }

    func run() async throws {
        try await peripheral.begin()
        _ = try await central.subscribe()
    }

    private func send() {
        state.withLock { state in
            while !state.isDone {
                let length = length(&state)
                let value =
                    state.isEnding
                    ? Data("EOM".utf8) : message.subdata(in: state.index..<min(state.index + length, message.count))
                guard
                    peripheral.manager.updateValue(
                        value, for: peripheral.characteristic, onSubscribedCentrals: nil)
                else {
                    state.refusals += 1
                    return
                }
                state.accepted += 1
                if state.isEnding { state.isDone = true } else { state.index += value.count }
                state.isEnding = state.index >= message.count
            }
        }
    }

    private func length(_ state: inout State) -> Int {
        let most = peripheral.centrals.withLock { $0.first }?.maximumUpdateValueLength ?? 20
        switch chunk {
        case .twenty: return 20
        case .askedEachTime: return most
        case .askedOnce:
            let length = state.length ?? most
            state.length = length
            return length
        }
    }
}
