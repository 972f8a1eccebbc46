// The errors that framings report, worded once.
extension FerryError {
    package static func messageTooLarge(sending count: Int, limit: Int) -> FerryError {
        FerryError(
            .messageTooLarge,
            "The message to be sent has \(count) bytes; the limit is \(limit). Raise Limits.maximumMessageSize on both"
                + " sides, or send less at once.")
    }

    package static func messageTooLarge(receiving what: ErrorText, afterMessages count: Int, limit: Int) -> FerryError {
        FerryError(
            .messageTooLarge,
            "Message \(count + 1) from the peer \(what); the limit is \(limit). Raise Limits.maximumMessageSize if the"
                + " peer is to send as much.")
    }

    package static func emptyChunk(afterMessages count: Int, bytes: Int) -> FerryError {
        FerryError(
            .malformedStream,
            "An empty chunk arrived after \(bytes) bytes of message \(count + 1) from the peer; no framing sends one."
                + " Check that the peer speaks the same framing.")
    }

    package static func truncatedMessage(_ what: ErrorText, raising: Bool, afterMessages count: Int) -> FerryError {
        FerryError(
            .truncatedMessage,
            "Message \(count + 1) from the peer is incomplete: the link \(what)."
                + (raising ? " Raise Limits.inboundStallTimeout if the peer is that slow." : ""))
    }

    static func roleUnknown(to framing: some Framing) -> FerryError {
        FerryError(
            .invalidConfiguration,
            "The \(framing.name) framing has to know which side connected, and the link does not say. Use a link whose Link.role"
                + " is not nil, or a framing in which both sides do the same.")
    }
}
