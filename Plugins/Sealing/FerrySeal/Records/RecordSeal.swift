#if Seal
    import Crypto
    import DequeModule
    public import Ferry
    import Foundation

    /// What a sealed record belongs to. A record of one scope does not open in another.
    public struct RecordScope: Sendable, Hashable {
        /// The stream's name.
        public let stream: String
        /// The epoch of the store: its sequence numbers mean something within one only.
        public let epoch: [UInt8]

        /// Makes a scope.
        public init(stream: String, epoch: [UInt8]) {
            self.stream = stream
            self.epoch = epoch
        }

        /// HPKE's info: a label, and both parts with their lengths, so that no two scopes are the same bytes.
        var info: [UInt8] {
            var bytes = [UInt8]("Ferry record 1".utf8)
            Varint.append(UInt64(stream.utf8.count), to: &bytes)
            bytes += stream.utf8
            Varint.append(UInt64(epoch.count), to: &bytes)
            return bytes + epoch
        }
    }

    /// How records are sealed, the same on both sides: HPKE (RFC 9180) in authenticated mode, with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256
    /// and ChaCha20-Poly1305.
    ///
    /// One exchange of keys serves many records: HPKE's exported secret is the key, a record's sequence number the nonce.
    ///
    /// ```
    /// with its key:  01, encapsulated key (32 bytes), sealed record, 16 bytes     49 bytes more than the record
    /// after it:      02, the key's name (4 bytes), sealed record, 16 bytes        21 bytes more
    /// ```
    enum RecordFormat {
        static let withKey: UInt8 = 1
        static let afterKey: UInt8 = 2
        static let encapsulatedCount = 32
        static let nameCount = 4
        static var suite: HPKE.Ciphersuite { .Curve25519_SHA256_ChachaPoly }
        static let exportContext = [UInt8]("Ferry record key 1".utf8)

        /// The short name of an encapsulated key. It only has to tell the keys of one sender apart; a wrong one does not open.
        static func name(of encapsulated: some Sequence<UInt8>) -> [UInt8] {
            Array(SHA256.hash(data: exportContext + [0] + encapsulated).prefix(nameCount))
        }
    }

    /// Seals a stream's records for their consumer, so that stores, gateways and brokers carry what they cannot read.
    ///
    /// It cannot be copied: a sequence number is sealed once. After a crash make a new one, which has a new key.
    public struct RecordSealer: ~Copyable, Sendable {
        private let key: SymmetricKey
        private let encapsulated: [UInt8]
        private let name: [UInt8]
        private let interval: Int
        private var sealedCount = 0
        private var last: UInt64?

        /// The most bytes that sealing adds.
        public static let maximumOverhead = 1 + RecordFormat.encapsulatedCount + Cipher.tagCount
        /// What it adds to records that follow one with the key.
        public static let usualOverhead = 1 + RecordFormat.nameCount + Cipher.tagCount

        /// Exchanges keys, for the records of one scope.
        ///
        /// - Parameters:
        ///   - consumer: who can open the records.
        ///   - sender: who has sealed them, which the consumer can tell.
        ///   - scope: what the records belong to.
        ///   - interval: one record in `interval` carries the key, the first always, so that a consumer that begins later, or finds the
        ///     first one gone, can open what follows. At least 1; default 64.
        /// - Throws: `seal.weakKey` for a consumer's key that is none.
        public init(
            for consumer: PublicKey, as sender: SecretKey, scope: RecordScope, keyEvery interval: Int = 64
        ) throws(FerryError) {
            // The library takes keys of small order here.
            _ = try sender.agree(with: consumer)
            do {
                let context = try HPKE.Sender(
                    recipientKey: Curve25519.KeyAgreement.PublicKey(rawRepresentation: consumer.bytes),
                    ciphersuite: RecordFormat.suite, info: Data(scope.info), authenticatedBy: sender.library)
                key = try context.exportSecret(context: RecordFormat.exportContext, outputByteCount: 32)
                encapsulated = Array(context.encapsulatedKey)
            } catch {
                throw FerryError(
                    .sealWeakKey,
                    "Nothing can be sealed for the key \(consumer.fingerprint). Ask its owner for another.",
                    cause: error)
            }
            name = RecordFormat.name(of: encapsulated)
            self.interval = max(1, interval)
        }

        /// A record, sealed.
        ///
        /// - Parameters:
        ///   - record: its bytes.
        ///   - sequence: its number in the scope, larger than any before.
        /// - Throws: `seal.outOfTurn` for a number that is not larger, `seal.exhausted` for 2^64 - 1.
        public mutating func seal(_ record: [UInt8], sequence: UInt64) throws(FerryError) -> [UInt8] {
            guard sequence < .max else {
                throw FerryError(.sealExhausted, "Sequence numbers of records end before 2^64 - 1.")
            }
            if let last, sequence <= last {
                throw FerryError(
                    .sealOutOfTurn,
                    "Record \(sequence) was to be sealed after record \(last). Numbers only grow; make a new sealer to begin anew."
                )
            }
            last = sequence
            let carriesKey = sealedCount % interval == 0
            sealedCount += 1
            var sealed = carriesKey ? [RecordFormat.withKey] + encapsulated : [RecordFormat.afterKey] + name
            sealed.reserveCapacity(sealed.count + record.count + Cipher.tagCount)
            try Cipher.seal(record, key, number: sequence, into: &sealed)
            return sealed
        }
    }

    /// Opens the records that one sender has sealed for this consumer, in any order.
    ///
    /// It cannot tell whether a record comes twice: the consumer keeps to the sequence numbers, as it does without a seal.
    public struct RecordOpener: Sendable {
        /// How many keys are remembered, the latest ones: a sender makes one each time it starts.
        public static let maximumKeys = 64

        private let consumer: SecretKey
        private let sender: PublicKey
        private let scope: RecordScope
        private var keys: Deque<(name: [UInt8], key: SymmetricKey)> = []

        /// For the records of one sender in one scope.
        public init(as consumer: SecretKey, from sender: PublicKey, scope: RecordScope) {
            self.consumer = consumer
            self.sender = sender
            self.scope = scope
        }

        /// The record.
        ///
        /// - Parameters:
        ///   - sealed: what ``RecordSealer`` made.
        ///   - sequence: the record's number in the scope.
        /// - Throws: `seal.truncated`; `seal.refused` when it was altered, or is of another sender, consumer, scope or number;
        ///   `seal.missingKey` when no record with its key was opened before.
        public mutating func open(_ sealed: [UInt8], sequence: UInt64) throws(FerryError) -> [UInt8] {
            switch sealed.first {
            case RecordFormat.withKey:
                let body = try body(of: sealed, after: RecordFormat.encapsulatedCount)
                let encapsulated = Array(sealed[1...RecordFormat.encapsulatedCount])
                let name = RecordFormat.name(of: encapsulated)
                if let known = keys.first(where: { $0.name == name }),
                    let record = Cipher.open(body, known.key, number: sequence)
                {
                    return record
                }
                guard let key = exchange(encapsulated), let record = Cipher.open(body, key, number: sequence) else {
                    throw refusal(sequence, sealed.count)
                }
                // Only now, so that strangers' keys push none out.
                keys.append((name, key))
                if keys.count > Self.maximumKeys { keys.removeFirst() }
                return record
            case RecordFormat.afterKey:
                let body = try body(of: sealed, after: RecordFormat.nameCount)
                let name = Array(sealed[1...RecordFormat.nameCount])
                let known = keys.filter { $0.name == name }
                guard !known.isEmpty else {
                    throw FerryError(
                        .sealMissingKey,
                        "The key of record \(sequence) is not known: no record that carries it has been opened. Begin with an earlier record, "
                            + "or wait for the next one that does.")
                }
                for (_, key) in known.reversed() {
                    if let record = Cipher.open(body, key, number: sequence) { return record }
                }
                throw refusal(sequence, sealed.count)
            default:
                let what = sealed.first.map { "begins with \($0)" } ?? "is empty"
                throw FerryError(
                    .sealTruncated,
                    "Record \(sequence) \(what); a sealed record begins with 1 or 2. It may not be sealed at all.")
            }
        }

        private func body(of sealed: [UInt8], after count: Int) throws(FerryError) -> ArraySlice<UInt8> {
            let least = 1 + count + Cipher.tagCount
            guard sealed.count >= least else {
                throw FerryError(
                    .sealTruncated,
                    "A sealed record has \(sealed.count) bytes; at least \(least) are needed. It was cut short.")
            }
            return sealed[(1 + count)...]
        }

        private func exchange(_ encapsulated: [UInt8]) -> SymmetricKey? {
            try? HPKE.Recipient(
                privateKey: consumer.library, ciphersuite: RecordFormat.suite, info: Data(scope.info),
                encapsulatedKey: Data(encapsulated),
                authenticatedBy: Curve25519.KeyAgreement.PublicKey(rawRepresentation: sender.bytes)
            ).exportSecret(context: RecordFormat.exportContext, outputByteCount: 32)
        }

        private func refusal(_ sequence: UInt64, _ count: Int) -> FerryError {
            FerryError(
                .sealRefused,
                "Record \(sequence) of \(count) bytes in stream \(scope.stream) does not authenticate: it was altered, or is of another sender, "
                    + "consumer, epoch or number.")
        }
    }
#endif
