#if Records
    /// A value in a store's table that Ferry never writes, and its place. SQLite keeps any type and any value in any column,
    /// and a damaged file may have them.
    struct Damage: Error {
        let table: String
        /// The row's key, such as "stream 3, sequence 7".
        let row: String
        let column: String
        /// The fault of the value.
        let what: String
    }

    /// Damage that a job met after it had changed something: the transaction is undone.
    struct DamageAfterChanges: Error { let damage: Damage }

    /// The largest sums that a stream's row may have: those of all 2^20 streams together still fit into 64 bits.
    enum StreamLimit {
        static let records = 1 << 36
        static let bytes = 1 << 42
        /// The last number of a record that arrived: counting on from it does not overflow.
        static let number: Int64 = 1 << 62
    }
#endif
