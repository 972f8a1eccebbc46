package import Testing

/// The tags of the suites: the layer that a suite is about, the feature, and whether it is slow.
extension Tag {
    // Layers, from the inside out.
    @Tag package static var core: Self
    @Tag package static var bluetooth: Self
    @Tag package static var host: Self
    @Tag package static var adapter: Self
    @Tag package static var coreBluetooth: Self
    @Tag package static var simulator: Self
    @Tag package static var program: Self

    // Features.
    @Tag package static var channel: Self
    @Tag package static var codec: Self
    @Tag package static var compression: Self
    @Tag package static var framing: Self
    @Tag package static var sequenced: Self
    @Tag package static var advertising: Self
    @Tag package static var gatt: Self
    @Tag package static var l2cap: Self
    @Tag package static var pairing: Self
    @Tag package static var recovery: Self
    @Tag package static var hostility: Self
    @Tag package static var records: Self
    @Tag package static var fleet: Self

    /// Takes more than a few seconds of a processor, or of waiting.
    @Tag package static var slow: Self
}
