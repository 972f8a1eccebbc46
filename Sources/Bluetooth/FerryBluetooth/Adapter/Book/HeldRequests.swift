/// What centrals have asked a role and wait to be told: answered once, by the role that was asked, while the connection lasts.
public struct HeldRequests<Call> {
    private var held: [RequestID: (role: UInt64, connection: UInt64, call: Call)] = [:]

    /// Nothing is asked.
    public init() {}

    /// A central asks a role, on the connection with this number; `call` is what the adapter answers it with.
    public mutating func hold(_ id: RequestID, for role: UInt64, on connection: UInt64, _ call: Call) {
        held[id] = (role, connection, call)
    }

    /// A role answers; nil when it was not asked, or the answer comes too late.
    public mutating func answer(_ id: RequestID, by role: UInt64) -> Call? {
        held[id]?.role == role ? held.removeValue(forKey: id)?.call : nil
    }

    /// The time for an answer is over.
    public mutating func expire(_ id: RequestID) { held[id] = nil }

    /// A connection has ended: removes its requests.
    public mutating func connectionDidEnd(_ connection: UInt64) {
        held = held.filter { $0.value.connection != connection }
    }

    /// A role was closed. Returns the requests to refuse in its place, with `unlikelyError`, in their order.
    public mutating func roleDidClose(_ role: UInt64) -> [Call] {
        let mine = held.filter { $0.value.role == role }.sorted { $0.key.rawValue < $1.key.rawValue }
        for (id, _) in mine { held[id] = nil }
        return mine.map(\.value.call)
    }
}

extension HeldRequests: Sendable where Call: Sendable {}
