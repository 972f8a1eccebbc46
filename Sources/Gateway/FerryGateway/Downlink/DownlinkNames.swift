#if NATS && Records
    /// How messages for peers are addressed; `Documentation/Gateway.md` has it.
    struct DownlinkNames: Sendable, Hashable {
        /// What subjects begin with.
        let prefix: String

        /// All streams of a peer.
        func pattern(_ peer: String) -> String { "\(prefix).\(RecordNames.word(peer)).*" }

        /// One stream of a peer.
        func subject(_ peer: String, _ stream: String) -> String {
            "\(prefix).\(RecordNames.word(peer)).\(RecordNames.word(stream))"
        }

        /// All messages for peers.
        var everything: String { "\(prefix).>" }

        /// The peer and its stream; nil for a subject of another form.
        func address(_ subject: String) -> (peer: String, stream: String)? {
            guard subject.hasPrefix(prefix + ".") else { return nil }
            let words = subject.dropFirst(prefix.count + 1).split(separator: ".", omittingEmptySubsequences: false)
            guard words.count == 2, let peer = RecordNames.name(words[0]), !peer.isEmpty,
                let stream = RecordNames.name(words[1]), !(peer + stream).utf8.contains(0)
            else { return nil }
            return (peer, stream)
        }
    }
#endif
