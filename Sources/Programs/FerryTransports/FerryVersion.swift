/// The version that both programs tell: the next one to be tagged, until it is.
package enum FerryVersion {
    /// As `--version` prints it.
    package static let text = "0.2.0-dev"
}
