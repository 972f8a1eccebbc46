/// The roles of one kind that are open on an adapter, in the order in which they were opened.
public struct OpenRoles<Role: Sendable>: Sendable {
    @usableFromInline var entries: [(id: UInt64, role: Role)] = []

    /// No role is open.
    public init() {}

    /// Whether no role is open.
    public var isEmpty: Bool { entries.isEmpty }

    /// The open roles.
    public var all: [Role] { entries.map(\.role) }

    /// A role was opened.
    ///
    /// - Parameters:
    ///   - id: the adapter's number of it, which no other role of the adapter ever has.
    ///   - role: the role itself.
    public mutating func open(_ id: UInt64, _ role: Role) { entries.append((id, role)) }

    /// A role was closed; nil when it had been before.
    public mutating func close(_ id: UInt64) -> Role? {
        entries.firstIndex { $0.id == id }.map { entries.remove(at: $0).role }
    }

    /// The entry of an open role.
    ///
    /// - Throws: `roleClosed`.
    public func required(_ id: UInt64) throws(BluetoothError) -> Role {
        guard let role = self[id] else { throw .roleClosed }
        return role
    }

    /// The entry of a role; nil when it is closed.
    public subscript(id: UInt64) -> Role? {
        get { entries.first { $0.id == id }?.role }
        set {
            guard let newValue, let place = entries.firstIndex(where: { $0.id == id }) else { return }
            entries[place].role = newValue
        }
    }

    /// Changes each entry.
    public mutating func update(_ body: (inout Role) -> Void) {
        for place in entries.indices { body(&entries[place].role) }
    }

    /// Whether a role is open and `predicate` holds for it: without a copy, and in the caller's code, for it is asked for each
    /// value.
    @inlinable
    public func contains(_ id: UInt64, where predicate: (borrowing Role) -> Bool) -> Bool {
        for place in entries.indices where entries[place].id == id { return predicate(entries[place].role) }
        return false
    }
}
