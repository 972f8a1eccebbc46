package import Ferry
import Synchronization

/// What a person has said of trust on a command line or in a configuration.
package struct TrustRequest: Sendable {
    /// The one-time code that the other side shows.
    package var code: String?
    /// A code that is used only where channels are sealed anyway.
    package var codeOfEnvironment: String?
    /// The key of the one peer that is meant, or its name in the list of trusted keys.
    package var peer: String?
    /// The name under which the other side's key is trusted from now on, when it has come by a code.
    package var remember: String?
    package var sealing = Sealing.whereNeeded
    /// The file of this side's secret key; nil for the one in the user's folder.
    package var identity: String?
    /// The file of the trusted keys; nil for the one in the user's folder.
    package var trusted: String?
    /// Whether a one-time code is shown when this side listens.
    package var showsCode = true
    /// The program's name, for messages.
    package var program = "ferry"

    package init() {}

    /// Which channels are sealed.
    package enum Sealing: Sendable {
        /// Those that others can read and change, and those of which something is asked that only a seal can do.
        case whereNeeded
        case always
        /// None, also where others can read and change them.
        case never
    }

    /// Whether something was said that only a seal can do.
    var demandsSeal: Bool { sealing == .always || code != nil || peer != nil || remember != nil }

    /// Whether a channel is sealed: where it was asked for, and wherever bytes leave the machine over a network.
    ///
    /// - Parameter leavesMachine: whether they do.
    package func isSealed(_ leavesMachine: Bool) -> Bool { sealing != .never && (demandsSeal || leavesMachine) }

    #if !Seal
        /// The error where a seal is needed and keys are missing.
        func areMissing(_ transport: NamedTransport) -> FerryError {
            let build = "Build with the trait Seal: swift run --traits Seal \(program) ..."
            guard !demandsSeal else {
                return FerryError(.transportUnavailable, "Keys and codes are not part of this build. \(build)")
            }
            return FerryError(
                .transportUnavailable,
                "\(transport) leaves this machine, where others can read and change what crosses, and this build cannot seal it. \(build); or "
                    + "give --plain if they may.")
        }
    #endif
}

/// Makes the framing of a channel from the one that was chosen: sealed, for one of the two sides.
package typealias FramingSeal = @Sendable (any Framing) -> any Framing

/// A transport whose links know how their channels are protected: ``framing(_:over:)`` seals the framing where that is so.
package final class ProtectedTransport: Transport {
    package let base: any Transport
    private let named: NamedTransport
    private let trust: Trust

    /// - Parameters:
    ///   - base: makes the links.
    ///   - named: as it was typed.
    ///   - request: the typed options of trust.
    ///   - tell: receives what people have to know, such as a code.
    package init(
        _ base: any Transport, named: NamedTransport, _ request: TrustRequest,
        tell: @escaping @Sendable (String) -> Void
    ) {
        self.base = base
        self.named = named
        trust = Trust(request, named, tell)
    }

    /// Checks whether this side can meet the request, before any wait.
    ///
    /// - Throws: as ``listen()`` and ``connect(timeout:)`` for reasons of trust.
    package func check(isListening: Bool) throws(FerryError) { _ = try seal(isListening: isListening) }

    private func seal(isListening: Bool) throws(FerryError) -> FramingSeal? {
        guard trust.request.isSealed(named.leavesMachine(isListening)) else { return nil }
        return try isListening ? trust.accepting() : trust.connecting()
    }

    package func listen() async throws(FerryError) -> LinkListener {
        guard let seal = try seal(isListening: true) else { return try await base.listen() }
        let inner = try await base.listen()
        // The task ends with the inner listener, which ends with the outer one: nothing here holds that.
        let links = inner.links
        let holder = ListenerHolder()
        let task = Task {
            for await link in links {
                let marked = TappedLink(link, observer: SealTap(seal))
                if holder.listener?.offer(marked) != true { marked.close() }
            }
            holder.listener?.close()
        }
        let listener = LinkListener {
            task.cancel()
            inner.close()
        }
        holder.listener = listener
        inner.onInterruption { [weak listener] reason in
            if let reason { listener?.interrupt(reason) } else { listener?.resume() }
        }
        return listener
    }

    package func connect(timeout: Duration) async throws(FerryError) -> any Link {
        guard let seal = try seal(isListening: false) else { return try await base.connect(timeout: timeout) }
        return TappedLink(try await base.connect(timeout: timeout), observer: SealTap(seal))
    }

    package func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        guard let seal = try seal(isListening: false) else { return try await base.connect(to: peer, timeout: timeout) }
        return TappedLink(try await base.connect(to: peer, timeout: timeout), observer: SealTap(seal))
    }

    /// The framing for a channel over a link: sealed where a protected transport has made the link so.
    ///
    /// - Parameters:
    ///   - framing: carries the payloads, sealed or not.
    ///   - link: as the transport made it, perhaps with taps around.
    package static func framing(_ framing: any Framing, over link: any Link) -> any Framing {
        var link = link
        while let tapped = link as? TappedLink {
            if let tap = tapped.observer as? SealTap { return tap.seal(framing) }
            link = tapped.link
        }
        return framing
    }
}

/// Marks a link with how its channel is protected.
private final class SealTap: LinkObserver {
    let seal: FramingSeal
    init(_ seal: @escaping FramingSeal) { self.seal = seal }
}

private final class ListenerHolder: Sendable {
    private struct Weak { weak var listener: LinkListener? }
    private let state = Mutex(Weak())
    var listener: LinkListener? {
        get { state.withLock { $0.listener } }
        set { state.withLock { $0.listener = newValue } }
    }
}
