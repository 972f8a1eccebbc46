#if Seal
    import Ferry
    import FerrySeal

    // What Documentation/Seal.md shows.

    private func sealed(over link: any Link, as mine: SecretKey, to theirs: PublicKey) throws -> any Sendable {
        let framing = SealedFraming(LengthPrefixFraming(), by: NoiseSealing(connectingAs: mine, to: .key(theirs)))
        let channel = try MessageChannel(over: link, codec: TextCodec(), framing: framing)
        return channel
    }
#endif
