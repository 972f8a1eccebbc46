public import Foundation

extension Pipe {
    /// Passes on what is written to it, and no bytes at the end, on a thread of its own. A `readabilityHandler` would do, but
    /// crashes at times on Linux, where it is a `DispatchSource` (swift-corelibs-libdispatch, issue 949).
    public func readOnThread(_ body: @escaping @Sendable (Data) -> Void) {
        let file = fileHandleForReading
        Thread.detachNewThread {
            while true {
                let data = file.availableData
                body(data)
                if data.isEmpty { return }
            }
        }
    }
}
