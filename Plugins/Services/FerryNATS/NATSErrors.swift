#if NATS
    import CNATS
    public import Ferry

    extension FerryError.Code {
        /// No server answers at the addresses given.
        public static let natsNoServer = FerryError.Code("nats.noServer")
        /// The server refuses the credentials, or what they do not permit.
        public static let natsRefused = FerryError.Code("nats.refused")
        /// TLS could not be agreed upon, or a certificate is not trusted.
        public static let natsInsecure = FerryError.Code("nats.insecure")
        /// The stream is at its limit and takes nothing more; later it may.
        public static let natsStreamFull = FerryError.Code("nats.streamFull")
        /// A stream or bucket is there, but not as it must be.
        public static let natsWrongShape = FerryError.Code("nats.wrongShape")
        /// There is no such stream, bucket or key.
        public static let natsNotFound = FerryError.Code("nats.notFound")
        /// A key is there already, or has another revision; or a subject's or stream's last message is not the one expected.
        public static let natsConflict = FerryError.Code("nats.conflict")
        /// The server is there, but JetStream is off, or has no leader yet.
        public static let natsNotReady = FerryError.Code("nats.notReady")
        /// Anything else that the server or libnats refuses.
        public static let natsFailed = FerryError.Code("nats.failed")
    }

    /// What libnats says, in words for people.
    struct NATSFailure: Error {
        let status: natsStatus
        var code: UInt32 = 0
        /// What the server said, or libnats on this thread.
        var text = ""

        init(_ status: natsStatus, _ code: jsErrCode = jsErrCode(0)) {
            self.status = status
            self.code = UInt32(code.rawValue)
            var last = NATS_OK
            if let words = nats_GetLastError(&last), last == status { text = Self.plain(String(cString: words)) }
        }

        /// What libnats says, without where in its source it says so: `No server available: (conn.c:2088): No server available`.
        static func plain(_ text: String) -> String {
            var parts: [Substring] = []
            for part in text.split(separator: ": ") {
                let isPlace = part.hasPrefix("(") && part.hasSuffix(")") && part.contains(".c:")
                if !isPlace, parts.last != part { parts.append(part) }
            }
            return parts.joined(separator: ": ")
        }

        /// What JetStream said in an answer.
        init(_ code: UInt32, _ text: String) {
            (status, self.code, self.text) = (NATS_ERR, code, text)
        }

        private var words: String {
            let name = natsStatus_GetText(status).map { String(cString: $0) } ?? "status \(status.rawValue)"
            return text.isEmpty || text == name ? name : "\(name): \(text)"
        }

        private static let isFull: Set<UInt32> = [
            JSAccountResourcesExceededErr.rawValue, JSInsufficientResourcesErr.rawValue,
            JSMemoryResourcesExceededErr.rawValue, JSStorageResourcesExceededErr.rawValue,
        ]
        private static let isConflict: Set<UInt32> = [
            JSStreamWrongLastSequenceErr.rawValue, JSStreamWrongLastMsgIDErr.rawValue,
        ]
        private static let isAway: Set<UInt32> = [
            JSClusterNotAvailErr.rawValue, JSStreamOfflineErr.rawValue, JSNotEnabledErr.rawValue,
            JSNotEnabledForAccountErr.rawValue,
        ]

        /// - Parameter what: the attempt, as the beginning of a sentence: "Stream ferry cannot be looked at".
        func error(_ what: String) -> FerryError {
            func make(_ code: FerryError.Code, _ advice: String) -> FerryError {
                FerryError(code, "\(what) (\(words)). \(advice)")
            }
            let lower = text.lowercased()
            if Self.isFull.contains(code) || (code == JSStreamStoreFailedErr.rawValue && lower.contains("exceeded")) {
                return make(.natsStreamFull, "Have consumers take messages out, or give the stream more room.")
            }
            if code == JSStreamMessageExceedsMaximumErr.rawValue || status == NATS_MAX_PAYLOAD {
                return make(
                    .messageTooLarge, "Raise the server's max_payload and the stream's maximum size of a message.")
            }
            if Self.isConflict.contains(code) || lower.contains("wrong last sequence") {
                return make(.natsConflict, "Another client has written there.")
            }
            if code == JSStreamNotFoundErr.rawValue { return make(.natsNotFound, "Create it, or check its name.") }
            if Self.isAway.contains(code) || status == NATS_NO_RESPONDERS {
                return make(
                    .natsNotReady,
                    "Turn JetStream on in the server (jetstream { store_dir: ... }), or wait until the cluster has a leader."
                )
            }
            switch status {
            case NATS_NO_SERVER, NATS_IO_ERROR, NATS_CONNECTION_DISCONNECTED, NATS_STALE_CONNECTION,
                NATS_NOT_YET_CONNECTED, NATS_SYS_ERROR, NATS_ADDRESS_MISSING:
                return make(.natsNoServer, "Check that nats-server runs there, and the address.")
            case NATS_CONNECTION_AUTH_FAILED, NATS_NOT_PERMITTED:
                return make(.natsRefused, "Check the user, the password or the credentials file, and what they permit.")
            case NATS_SSL_ERROR, NATS_SECURE_CONNECTION_WANTED, NATS_SECURE_CONNECTION_REQUIRED:
                return make(
                    .natsInsecure,
                    "Use tls:// where the server speaks TLS, and name the file of the authority that signed its certificate."
                )
            case NATS_TIMEOUT: return make(.timedOut, "The server may be busy or away; try again.")
            case NATS_CONNECTION_CLOSED, NATS_INVALID_SUBSCRIPTION: return make(.closed, "Connect again.")
            case NATS_NOT_FOUND: return make(.natsNotFound, "Create it, or check its name.")
            case NATS_INVALID_ARG, NATS_INVALID_SUBJECT, NATS_INVALID_TIMEOUT:
                return make(.invalidConfiguration, "Check the names and values that were given.")
            default: return make(.natsFailed, "The server's log says more.")
            }
        }
    }

    /// Throws what went wrong.
    func require(_ status: natsStatus, _ what: @autoclosure () -> String) throws(FerryError) {
        guard status != NATS_OK else { return }
        throw NATSFailure(status).error(what())
    }

    /// Throws what went wrong, with JetStream's own code.
    func require(_ status: natsStatus, _ code: jsErrCode, _ what: @autoclosure () -> String) throws(FerryError) {
        guard status != NATS_OK else { return }
        throw NATSFailure(status, code).error(what())
    }

    extension Duration {
        /// For libnats; at least 1.
        var milliseconds: Int64 {
            max(1, components.seconds.clampedForNATS * 1000 + components.attoseconds / 1_000_000_000_000_000)
        }
        var nanoseconds: Int64 {
            components.seconds.clampedForNATS * 1_000_000_000 + components.attoseconds / 1_000_000_000
        }
    }

    extension Int64 {
        /// A hundred years, so that nothing overflows.
        fileprivate var clampedForNATS: Int64 { Swift.max(-3_153_600_000, Swift.min(3_153_600_000, self)) }
    }
#endif
