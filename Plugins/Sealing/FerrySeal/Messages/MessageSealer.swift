#if Seal
    import Crypto
    package import Ferry

    /// How the two sides know a message's number.
    package enum Numbering: UInt8, Sendable, Hashable {
        /// By counting, where the framing keeps the order: 16 bytes a message.
        case counted = 0
        /// The message begins with it, as a varint, where messages overtake each other: 17 bytes a message at first, 18 from number 128
        /// on, 19 from 16 384 on.
        case stated = 1

        /// The most bytes that sealing adds.
        package var maximumOverhead: Int { self == .counted ? Cipher.tagCount : Cipher.tagCount + 10 }
    }

    /// The rules of numbers, the same on both sides.
    ///
    /// A message's number counts the messages that were sealed for one direction of one handshake, from 0. It is the nonce. The key
    /// changes with each epoch of 65 536 numbers, by Noise's REKEY, whichever of its messages arrive.
    package enum SealNumbers {
        /// Numbers of one key.
        package static let perEpoch: UInt64 = 1 << 16
        /// How far apart the numbers that are under way at once may be, in epochs: 4 194 304 numbers.
        package static let epochsUnderWay: UInt64 = 64
        /// No number reaches this: what a session of 1000 messages a millisecond would take 8000 years for.
        package static let limit: UInt64 = 1 << 48

        static func epoch(_ number: UInt64) -> UInt64 { number / perEpoch }
    }

    /// Seals one direction's messages.
    package struct MessageSealer: Sendable {
        private var key: SymmetricKey
        /// The number of the next message.
        package private(set) var next: UInt64
        private let numbering: Numbering

        /// - Parameter next: the first number; any other than 0 is for tests, with the key of its epoch.
        package init?(_ cipher: CipherState, _ numbering: Numbering, next: UInt64 = 0) {
            guard let key = cipher.key else { return nil }
            self.key = key
            self.next = next
            self.numbering = numbering
        }

        /// The payload, sealed: its number if it states one, as many bytes, and 16 more.
        ///
        /// - Throws: `seal.exhausted` after 2^48 messages.
        package mutating func seal(_ payload: [UInt8]) throws(FerryError) -> [UInt8] {
            guard next < SealNumbers.limit else {
                throw FerryError(
                    .sealExhausted,
                    "This channel has sealed 2^48 messages, the most of one handshake. Open a new channel.")
            }
            var sealed: [UInt8] = []
            sealed.reserveCapacity(payload.count + numbering.maximumOverhead)
            if numbering == .stated { Varint.append(next, to: &sealed) }
            try Cipher.seal(payload, key, number: next, into: &sealed)
            try advance(by: 1)
            return sealed
        }

        /// Passes over `count` numbers without sealing. For tests.
        package mutating func skip(_ count: UInt64) throws(FerryError) { try advance(by: count) }

        private mutating func advance(by count: UInt64) throws(FerryError) {
            let later = next + count
            for _ in SealNumbers.epoch(next)..<SealNumbers.epoch(later) { key = try Cipher.rekeyed(key) }
            next = later
        }
    }

    /// Opens one direction's messages.
    package struct MessageOpener: Sendable {
        private let numbering: Numbering
        private var window: ReplayWindow
        /// The keys of consecutive epochs, from ``firstEpoch`` on.
        private var keys: [SymmetricKey]
        private var firstEpoch: UInt64

        /// - Parameter next: the first number; any other than 0 is for tests, with the key of its epoch.
        package init?(_ cipher: CipherState, _ numbering: Numbering, next: UInt64 = 0) {
            guard let key = cipher.key else { return nil }
            self.numbering = numbering
            keys = [key]
            firstEpoch = SealNumbers.epoch(next)
            window = ReplayWindow()
            if next > 0 {
                window.take(next - 1)
                window.giveUp(below: next)
            }
        }

        /// How many messages have been opened or passed over.
        package var next: UInt64 { window.next }
        /// How many epochs' keys are held: at most 64.
        package var keyCount: Int { keys.count }

        /// The payload of a sealed message.
        ///
        /// After an error nothing has changed; the channel ends all the same, for its peer cannot be trusted any more.
        ///
        /// - Throws: `seal.truncated`, `seal.replayed`, `seal.reordered`, `seal.tooOld`, `seal.tooFarAhead`, `seal.refused`,
        ///   `seal.exhausted`.
        package mutating func open(_ sealed: [UInt8]) throws(FerryError) -> [UInt8] {
            let (number, start) = try number(of: sealed)
            guard sealed.count - start >= Cipher.tagCount else {
                throw FerryError(
                    .sealTruncated,
                    "A sealed message has \(sealed.count) bytes; at least \(start + Cipher.tagCount) are needed. It was cut short, or "
                        + "the peer does not seal: use the same setting on both sides.")
            }
            try check(number)
            var attempt = keys
            let key = try Self.key(of: SealNumbers.epoch(number), from: firstEpoch, in: &attempt)
            guard let payload = Cipher.open(sealed[start...], key, number: number) else {
                throw diagnosis(of: sealed[start...], number)
            }
            window.take(number)
            keys = attempt
            try prepareNextEpoch()
            forgetKeys()
            return payload
        }

        private func number(of sealed: [UInt8]) throws(FerryError) -> (UInt64, start: Int) {
            guard numbering == .stated else { return (window.next, 0) }
            var decoder = Varint.Decoder()
            for (index, byte) in sealed.enumerated() {
                do { if let number = try decoder.push(byte) { return (number, index + 1) } } catch { break }
            }
            throw FerryError(
                .sealTruncated,
                "A sealed message of \(sealed.count) bytes does not begin with a whole number. It was cut short, or the peer does not "
                    + "seal: use the same setting on both sides.")
        }

        private func check(_ number: UInt64) throws(FerryError) {
            guard number < SealNumbers.limit else {
                throw FerryError(.sealExhausted, "A sealed message has the number \(number); numbers end before 2^48.")
            }
            switch window.standing(of: number) {
            case .new: break
            case .replayed:
                throw FerryError(
                    .sealReplayed,
                    "The sealed message \(number) came a second time. An attacker on the path repeats messages.")
            case .tooOld:
                throw FerryError(
                    .sealTooOld,
                    "The sealed message \(number) came after the window had passed it (\(window.floor)). It is late beyond measure, or "
                        + "an attacker repeats messages.")
            }
            let lead = SealNumbers.epochsUnderWay * SealNumbers.perEpoch
            guard number < window.next + lead else {
                throw FerryError(
                    .sealTooFarAhead,
                    "The sealed message \(number) is more than \(lead) ahead of the last one, \(window.next). No sender has as many under "
                        + "way.")
            }
        }

        /// The key of an epoch; `keys` grows up to it.
        private static func key(
            of epoch: UInt64, from first: UInt64, in keys: inout [SymmetricKey]
        ) throws(FerryError) -> SymmetricKey {
            // Both are bounded by the checks: an epoch is neither older than the oldest key nor 65 epochs newer.
            while first + UInt64(keys.count) <= epoch, let last = keys.last { keys.append(try Cipher.rekeyed(last)) }
            guard epoch >= first else { throw FerryError(.sealTooOld, "The key of epoch \(epoch) has been wiped.") }
            return keys[Int(epoch - first)]
        }

        /// The sender has dropped the old key with the last number of an epoch; this side follows, so that neither holds it longer.
        private mutating func prepareNextEpoch() throws(FerryError) {
            _ = try Self.key(of: SealNumbers.epoch(window.next), from: firstEpoch, in: &keys)
        }

        /// Wipes the keys of epochs of which nothing may come any more.
        private mutating func forgetKeys() {
            let newest = SealNumbers.epoch(window.next)
            if newest >= SealNumbers.epochsUnderWay {
                window.giveUp(below: (newest - SealNumbers.epochsUnderWay + 1) * SealNumbers.perEpoch)
            }
            let oldest = SealNumbers.epoch(window.lowestMissing)
            guard oldest > firstEpoch else { return }
            keys.removeFirst(Int(oldest - firstEpoch))
            firstEpoch = oldest
        }

        // MARK: Diagnosis

        /// Messages of more bytes are not looked into any further: looking costs as many decryptions as numbers are tried.
        private static let largestDiagnosed = 64 << 10
        /// How many numbers either side of the expected one are tried.
        private static let triedNumbers: UInt64 = 8

        /// Why a message does not open: where the number is counted, a neighbour's number may open it.
        private func diagnosis(of sealed: ArraySlice<UInt8>, _ number: UInt64) -> FerryError {
            if numbering == .counted, sealed.count <= Self.largestDiagnosed {
                for distance in 1...Self.triedNumbers {
                    if number >= distance, opens(sealed, number - distance) {
                        return FerryError(
                            .sealReplayed,
                            "The sealed message \(number - distance) came a second time, in place of \(number). An attacker on the path "
                                + "repeats messages.")
                    }
                    if opens(sealed, number + distance) {
                        return FerryError(
                            .sealReordered,
                            "The sealed message \(number + distance) came in place of \(number): a message is lost or overtaken. Use the "
                                + "sequenced framing where links do that.")
                    }
                }
            }
            return FerryError(
                .sealRefused,
                "The sealed message \(number) of \(sealed.count) bytes does not authenticate: it was altered or cut on the way, or is "
                    + "of another session or key.")
        }

        private func opens(_ sealed: ArraySlice<UInt8>, _ number: UInt64) -> Bool {
            let epoch = SealNumbers.epoch(number)
            guard epoch >= firstEpoch, epoch - firstEpoch < UInt64(keys.count) else { return false }
            return Cipher.open(sealed, keys[Int(epoch - firstEpoch)], number: number) != nil
        }
    }
#endif
