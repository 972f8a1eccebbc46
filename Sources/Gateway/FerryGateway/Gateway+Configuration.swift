#if NATS && Records
    import Ferry
    import FerryNATS

    extension Gateway.Configuration {
        func check() throws(FerryError) {
            func refuse(_ text: String) -> FerryError { FerryError(.invalidConfiguration, text) }
            guard !name.isEmpty else {
                throw refuse("The gateway has no name, which its records carry. Give it one.")
            }
            try RecordNames.check(prefix: prefix, stream: stream.name)
            guard retention >= .milliseconds(100), retention <= .seconds(86_400) else {
                throw refuse("The retention is \(retention); it must be 100 ms to a day.")
            }
            guard lookInterval >= .milliseconds(10), lookInterval <= retention else {
                throw refuse("The server is looked at each \(lookInterval); that must be 10 ms to the retention.")
            }
            guard stream.duplicateWindow >= retention + lookInterval else {
                throw refuse(
                    "The stream's duplicate window is \(stream.duplicateWindow); it must be at least \(retention + lookInterval), for "
                        + "records are kept for that time and may be published again.")
            }
            guard (1...32_768).contains(maximumInFlight) else {
                throw refuse("\(maximumInFlight) records on their way at once are out of range; give 1 to 32768.")
            }
            guard patience >= .milliseconds(10), patience <= .seconds(3600) else {
                throw refuse("The patience is \(patience); it must be 10 ms to an hour.")
            }
        }
    }
#endif
