import Ferry
import FerryBluetooth
public import Foundation

/// An L2CAP connection-oriented channel, as two streams. It closes when this object goes away, or when both streams are
/// closed.
///
/// The streams carry bytes: one write may be read in pieces. They take part in a run loop by `schedule(in:forMode:)`
/// and report to their delegates there; on the main run loop they also work under `dispatchMain()`.
open class CBL2CAPChannel: NSObject {
    private let pipe: ChannelPipe?
    private let remote: CBPeer?
    private let number: CBL2CAPPSM

    /// - Parameter psm: the number that it shows; nil for its own.
    init(_ channel: any L2CAPChannel, peer: CBPeer, psm: CBL2CAPPSM? = nil) {
        remote = peer
        number = psm ?? channel.psm.rawValue
        let pipe = ChannelPipe(channel)
        self.pipe = pipe
        super.init()
        channel.activate(pipe)
    }

    /// A channel without a peer and without streams: for tests that make one up.
    public override init() {
        pipe = nil
        remote = nil
        number = 0
    }

    deinit { pipe?.close() }

    // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
    /// The other side: a ``CBPeripheral`` or a ``CBCentral``. Never nil.
    open var peer: CBPeer! { remote }
    // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
    /// What the other side sends. Nil as ``peer`` is.
    open var inputStream: InputStream! { pipe?.input }
    // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
    /// The stream to the other side. Nil as ``peer`` is.
    open var outputStream: OutputStream! { pipe?.output }
    /// The number by which the channel was opened.
    open var psm: CBL2CAPPSM { number }
    /// As Apple's prints.
    open override var description: String {
        printed("peer = \(remote.map { "\($0)" } ?? "(null)"), psm = \(number)", separator: " ")
    }
    /// As ``description``.
    open override var debugDescription: String { description }
}
