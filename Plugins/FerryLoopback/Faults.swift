import Ferry

extension LoopbackRadio {
    /// What goes wrong on purpose.
    public struct Faults: Sendable {
        /// Nothing.
        public init() {}

        func validate() throws(FerryError) {}
    }
}

struct FaultInjector {
    init(_ faults: LoopbackRadio.Faults) {}
}
