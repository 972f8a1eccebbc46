/// The bounds of one channel. Everything a peer can make grow has one, with a default that is safe for a phone.
///
/// Sizes are in bytes. An error for an exceeded limit names the limit, so that it can be raised here on purpose.
public struct Limits: Sendable, Hashable {
    /// Largest payload of one message, in either direction, the envelope of a compression not counted. Default 16 MiB. The
    /// sequenced framing states it in one byte and so takes up to an eighth more.
    public var maximumMessageSize = 16 << 20

    /// Largest plain size that a compressed message may state. Default 16 MiB. It is checked before memory is taken.
    public var maximumDecompressedSize = 16 << 20

    /// Largest plain size per compressed byte. Default 256 (deflate itself cannot exceed 1032). A sender whose message
    /// would exceed it sends the message stored, so two channels with equal limits always understand each other.
    public var maximumCompressionRatio = 256

    /// Most bytes of messages that wait to be sent before ``MessageChannel/send(_:options:timeout:progress:)`` refuses
    /// another. Default 64 MiB. A single message within ``maximumMessageSize`` is always taken when none waits.
    public var maximumOutboundBytes = 64 << 20

    /// Most bytes of whole messages that wait to be read. Default 32 MiB. At half of it the link is asked to stop its
    /// peer; a link that cannot is closed when the limit is reached. The sequenced framing stops the peer by its credit.
    public var maximumInboundBytes = 32 << 20

    /// Most whole messages that wait to be read, so that empty messages are bounded too. Default 65 536.
    public var maximumInboundMessages = 1 << 16

    /// Longest time without the link taking a single chunk while some wait, before the channel is closed, or a link that
    /// reconnects is replaced. Default 30 s, the ATT transaction timeout (Core Specification 5.4, Vol 3, Part F, 3.3.3).
    public var outboundStallTimeout: Duration = .seconds(30)

    /// Longest silence in the middle of a message being received, before the channel is closed. Default 60 s.
    public var inboundStallTimeout: Duration = .seconds(60)

    /// How long after a refusal the link is probed again although it reported no readiness. Default 15 ms: platform
    /// stacks are known to lose the signal.
    public var readinessProbeInterval: Duration = .milliseconds(15)

    /// The defaults.
    public init() {}
}
