#if Seal
    import Ferry
    import FerrySeal

    /// A peer of a store as people name it.
    enum StorePeer {
        /// The peer's name in a store: of a public key, which is pasted more easily, what a sealed channel calls its owner.
        ///
        /// - Throws: `seal.malformedKey` for a key that is mistyped.
        static func name(_ text: String) throws(FerryError) -> String {
            guard text.lowercased().hasPrefix("ferry1"), text.utf8.count > 40 else { return text }
            return PeerIdentity("\(try PublicKey(text: text).fingerprint)", certainty: .key).description
        }
    }
#else
    import Ferry

    /// A peer of a store as people name it: a build without keys takes each name as it is.
    enum StorePeer {
        static func name(_ text: String) throws(FerryError) -> String { text }
    }
#endif
