/// A failure while a command ran, for people. A problem with its arguments is a `ValidationError`, which shows the
/// usage as well.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String

    /// - Parameter description: may have words of a peer or a file in it.
    init(_ description: String) { self.description = description.harmless }
}
