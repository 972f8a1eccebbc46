#if NATS && Records
    import Ferry
    import FerryNATS

    extension FerryError {
        /// Whether trying again changes nothing, as long as nobody changes what was given or what is on the server.
        var isHopelessForNATS: Bool {
            let codes: [Code] = [
                .natsRefused, .natsInsecure, .natsWrongShape, .natsNotFound, .messageTooLarge, .invalidConfiguration,
            ]
            return codes.contains(code)
        }
    }
#endif
