#if Seal
    public import Ferry

    /// What a seal meets. No message of these errors holds a key or a part of one.
    extension FerryError.Code {
        /// A sealed message or a handshake message is too short to be one.
        public static let sealTruncated = FerryError.Code("seal.truncated")
        /// A message does not authenticate: it was altered, comes from another session, or from another key.
        public static let sealRefused = FerryError.Code("seal.refused")
        /// A message came a second time.
        public static let sealReplayed = FerryError.Code("seal.replayed")
        /// A message came before one that should precede it, or one is missing.
        public static let sealReordered = FerryError.Code("seal.reordered")
        /// A message was overtaken by more others than the replay window remembers.
        public static let sealTooOld = FerryError.Code("seal.tooOld")
        /// A message's number is further ahead than any that a sender may use.
        public static let sealTooFarAhead = FerryError.Code("seal.tooFarAhead")
        /// A handshake step was asked for, or came, out of its turn.
        public static let sealOutOfTurn = FerryError.Code("seal.outOfTurn")
        /// A message of the handshake came a second time.
        public static let sealHandshakeRepeated = FerryError.Code("seal.handshakeRepeated")
        /// A peer's key yields an all-zero shared secret, as only a crafted key does (RFC 7748, 6.1).
        public static let sealWeakKey = FerryError.Code("seal.weakKey")
        /// The peer proved a key that this side does not accept.
        public static let sealStranger = FerryError.Code("seal.stranger")
        /// The peer has ended the handshake: it does not accept this side's key or code. It says so itself, and nothing proves it.
        public static let sealNotAccepted = FerryError.Code("seal.notAccepted")
        /// A key has sealed as many messages as it may.
        public static let sealExhausted = FerryError.Code("seal.exhausted")
        /// A record's key is not known: the record that carries it has not been opened.
        public static let sealMissingKey = FerryError.Code("seal.missingKey")
        /// Text or bytes are not a key, a fingerprint, an invitation or a list of keys.
        public static let sealMalformedKey = FerryError.Code("seal.malformedKey")
        /// A file with a key can be read or changed by others, or cannot be used at all.
        public static let sealUnsafeFile = FerryError.Code("seal.unsafeFile")
    }
#endif
