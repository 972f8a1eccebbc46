/// A requirement of a seam that an implementation did not meet. Any test library reports it as a thrown error.
public struct ConformanceFailure: Error, CustomStringConvertible {
    /// The requirement, in the words of the kit.
    public let requirement: String

    /// The observed behaviour, with the input that shows it.
    public let detail: String

    /// Makes a failure.
    public init(_ requirement: String, _ detail: String) {
        self.requirement = requirement
        self.detail = detail
    }

    /// Requirement and detail.
    public var description: String { "\(requirement): \(detail)" }
}
