#if NATS && Records
    import Ferry
    import FerryNATS

    extension FerryError {
        /// Whether the error is permanent: a retry cannot succeed without a change of configuration or of the server.
        ///
        /// - Parameter creates: whether a stream or bucket that is not there is made: a cluster that has not settled says of one that
        ///   it was asked to make that it was not found.
        func isHopelessForNATS(creates: Bool) -> Bool {
            let codes: [Code] = [
                .natsRefused, .natsInsecure, .natsWrongShape, .messageTooLarge, .invalidConfiguration,
            ]
            return codes.contains(code) || code == .natsNotFound && !creates
        }
    }
#endif
