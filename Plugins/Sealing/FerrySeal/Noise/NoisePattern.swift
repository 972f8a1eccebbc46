#if Seal
    /// A handshake pattern of Noise revision 34 (7.5), with at most one pre-shared key (9).
    package struct NoisePattern: Sendable, Hashable {
        /// A step within a message.
        enum Token: Sendable, Hashable { case e, s, ee, es, se, ss, psk }

        /// The pattern's name with its modifier, such as `XXpsk0`.
        package let name: String
        /// Whether each side's static key is known to the other before the handshake.
        let knowsInitiator: Bool
        let knowsResponder: Bool
        /// The messages in turn, the initiator's first.
        let messages: [[Token]]

        private init(_ name: String, _ messages: [[Token]], knowsInitiator: Bool = false, knowsResponder: Bool = false)
        {
            self.name = name
            self.messages = messages
            self.knowsInitiator = knowsInitiator
            self.knowsResponder = knowsResponder
        }

        /// Neither side has a static key: for the vectors.
        package static let nn = NoisePattern("NN", [[.e], [.e, .ee]])
        /// The responder shows its key: for the vectors.
        package static let nx = NoisePattern("NX", [[.e], [.e, .ee, .s, .es]])
        /// Both show their keys, which neither has to know before: three messages, one and a half round trips.
        package static let xx = NoisePattern("XX", [[.e], [.e, .ee, .s, .es], [.s, .se]])
        /// The initiator knows the responder's key and shows its own in the first message: two messages.
        package static let ik = NoisePattern("IK", [[.e, .es, .s, .ss], [.e, .ee, .se]], knowsResponder: true)
        /// Both know both keys: two messages, the fewest bytes.
        package static let kk = NoisePattern(
            "KK", [[.e, .es, .ss], [.e, .ee, .se]], knowsInitiator: true, knowsResponder: true)

        /// The pattern with a pre-shared key mixed in before the first message (0) or after message `place`.
        ///
        /// - Returns: nil when there is no such message, or a key is mixed in already.
        package func withPresharedKey(_ place: Int) -> NoisePattern? {
            guard (0...messages.count).contains(place), !hasPresharedKey else { return nil }
            var messages = messages
            if place == 0 { messages[0].insert(.psk, at: 0) } else { messages[place - 1].append(.psk) }
            return NoisePattern(
                "\(name)psk\(place)", messages, knowsInitiator: knowsInitiator, knowsResponder: knowsResponder)
        }

        /// How many messages a handshake has.
        package var messageTotal: Int { messages.count }

        /// Whether a pre-shared key is mixed in.
        package var hasPresharedKey: Bool { messages.contains { $0.contains(.psk) } }

        /// The whole protocol's name, which is a part of each handshake's hash.
        package var protocolName: String { "Noise_\(name)_25519_ChaChaPoly_SHA256" }

        /// Whether this side shows or uses its own static key.
        func needsStatic(isInitiator: Bool) -> Bool {
            if isInitiator ? knowsInitiator : knowsResponder { return true }
            return messages.enumerated().contains {
                $0.offset.isMultiple(of: 2) == isInitiator && $0.element.contains(.s)
            }
        }

        /// How many bytes a message with an empty payload has.
        package func messageCount(_ index: Int) -> Int {
            var hasKey = false
            var count = 0
            for (at, tokens) in messages.enumerated() where at <= index {
                count = 0
                for token in tokens {
                    switch token {
                    case .e:
                        count += 32
                        hasKey = hasKey || hasPresharedKey
                    case .s: count += hasKey ? 32 + Cipher.tagCount : 32
                    case .ee, .es, .se, .ss, .psk: hasKey = true
                    }
                }
                count += hasKey ? Cipher.tagCount : 0
            }
            return count
        }
    }
#endif
