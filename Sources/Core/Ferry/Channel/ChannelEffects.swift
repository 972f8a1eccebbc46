/// Why a sender gives up.
enum Abandonment: Sendable {
    case cancelled, timedOut

    var code: FerryError.Code { self == .cancelled ? .cancelled : .timedOut }
    var what: String { self == .cancelled ? "The task was cancelled" : "The timeout passed" }
}

/// A message on its way out, and whom to tell.
struct PendingSend: Sendable {
    let totalBytes: Int
    var acceptedBytes = 0
    let timer: ScheduledTimer?
    var progress: (@Sendable (SendProgress) -> Void)?
    /// Nil once the sender has stopped waiting.
    var completion: (@Sendable (Result<Void, FerryError>) -> Void)?
}

/// A message that the session has not got yet.
struct PlacedMessage: Sendable {
    let id: MessageID
    let payload: [UInt8]
    let options: SendOptions
    let send: PendingSend
}

/// A caller that waits for a message.
struct Reader: Sendable {
    let id: MessageID
    let resume: @Sendable (Delivery) -> Void
}

/// What a reader gets.
package enum Delivery: Sendable {
    case message([UInt8])
    case failure(FerryError)
    case end

    var byteCount: Int {
        if case .message(let payload) = self { payload.count } else { 0 }
    }
}

/// What the shell does once the lock is free, in this order.
struct Effects: Sendable {
    var progress: [(@Sendable (SendProgress) -> Void, SendProgress)] = []
    private(set) var completions: [(@Sendable (Result<Void, FerryError>) -> Void, Result<Void, FerryError>)] = []
    var deliveries: [(Reader, Delivery)] = []
    var closesLink = false
    /// The link is to be given up for another, if it can be, because of this.
    var replacesLink: FerryError?
    var actions: [@Sendable () -> Void] = []

    var isEmpty: Bool {
        progress.isEmpty && completions.isEmpty && deliveries.isEmpty && !closesLink && replacesLink == nil
            && actions.isEmpty
    }

    mutating func complete(_ send: PendingSend, _ result: Result<Void, FerryError>) {
        if let completion = send.completion { completions.append((completion, result)) }
    }
}
