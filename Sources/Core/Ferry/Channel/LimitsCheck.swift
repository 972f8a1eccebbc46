extension Limits {
    /// Refuses what no channel can work with.
    ///
    /// - Throws: `invalidConfiguration` with the limit that is out of range, its value, and what it may be.
    func check() throws(FerryError) {
        func require(_ holds: Bool, _ name: String, _ value: Any, _ range: String) throws(FerryError) {
            guard !holds else { return }
            throw FerryError(.invalidConfiguration, "Limits.\(name) is \(value); it must be \(range).")
        }
        try require(maximumMessageSize >= 0, "maximumMessageSize", maximumMessageSize, "at least 0")
        try require(maximumDecompressedSize >= 0, "maximumDecompressedSize", maximumDecompressedSize, "at least 0")
        try require(maximumCompressionRatio >= 1, "maximumCompressionRatio", maximumCompressionRatio, "at least 1")
        try require(maximumOutboundBytes >= 0, "maximumOutboundBytes", maximumOutboundBytes, "at least 0")
        try require(maximumInboundBytes >= 0, "maximumInboundBytes", maximumInboundBytes, "at least 0")
        try require(maximumInboundMessages >= 1, "maximumInboundMessages", maximumInboundMessages, "at least 1")
        try require(outboundStallTimeout > .zero, "outboundStallTimeout", outboundStallTimeout, "more than zero")
        try require(inboundStallTimeout > .zero, "inboundStallTimeout", inboundStallTimeout, "more than zero")
        try require(
            readinessProbeInterval >= .milliseconds(1), "readinessProbeInterval", readinessProbeInterval,
            "at least 1 ms")
    }
}
