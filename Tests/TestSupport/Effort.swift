import Foundation

/// How much the exhaustive and the random tests compute: by default a part that ends soon, and all with `FERRY_FULL` in the
/// environment.
package enum Effort {
    package static let isFull = ProcessInfo.processInfo.environment["FERRY_FULL"] != nil

    /// Returns `full` with `FERRY_FULL` in the environment, and `quick` without.
    package static func of<Size>(_ quick: Size, full: Size) -> Size { isFull ? full : quick }
}
