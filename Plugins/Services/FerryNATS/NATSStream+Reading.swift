#if NATS
    import CNATS
    public import Ferry
    import FoundationEssentials

    /// A message as a stream keeps it.
    public struct NATSStored: Sendable, Hashable {
        /// The message.
        public let message: NATSMessage
        /// Its place in the stream: 1 and more.
        public let sequence: UInt64
        /// When the stream took it, in nanoseconds since 1970 by its server's clock.
        public let time: UInt64
    }

    extension NATSStored {
        /// Nanoseconds since 1970 of a server's date, `2026-11-24T09:12:01.250123456Z` (RFC 3339); nil for any other text. Zeros at the
        /// end of a fraction are left out. Foundation's dates are not that exact.
        static func nanoseconds(_ date: String) -> UInt64? {
            guard date.hasSuffix("Z") else { return nil }
            let parts = date.dropLast().split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count <= 2, let whole = try? Date("\(parts[0])Z", strategy: .iso8601),
                whole.timeIntervalSince1970 >= 0
            else { return nil }
            let fraction = parts.count == 2 ? parts[1] : "0"
            guard (1...9).contains(fraction.count), fraction.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let digits = UInt64(fraction + String(repeating: "0", count: 9 - fraction.count))
            else { return nil }
            return UInt64(whole.timeIntervalSince1970) * 1_000_000_000 + digits
        }
    }

    /// Reading and removing messages one by one, without a consumer. The stream must allow it (``NATSStream/allowsDirectReading``).
    extension NATSConnection {
        /// The first message of some subjects at or after a place; nil when there is none.
        ///
        /// In a cluster any server of the stream's may answer, as far as it has come.
        ///
        /// - Parameters:
        ///   - subject: with wildcards.
        ///   - sequence: the place.
        ///   - stream: the stream's name.
        /// - Throws: `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func next(
            of subject: String, from sequence: UInt64, in stream: String
        ) async throws(FerryError) -> NATSStored? {
            let which = DirectRequest(seq: max(1, sequence), next_by_subj: subject)
            let bytes = (try? JSONEncoder().encode(which)) ?? Data()
            return try await direct(stream, request: Array(bytes), "Stream \(stream) cannot be read")
        }

        private struct DirectRequest: Encodable {
            let seq: UInt64
            let next_by_subj: String
        }

        /// One message of a stream; nil where there is none (NATS ADR-31).
        ///
        /// - Parameters:
        ///   - place: the stream's name, and after a dot the subject of which the last message is wanted; then there is no request.
        ///   - request: which one is wanted.
        ///   - what: the attempt, as the beginning of an error's sentence.
        func direct(
            _ place: String, request: [UInt8] = [], _ what: String
        ) async throws(FerryError) -> NATSStored? {
            let answer = try await self.request(NATSMessage("$JS.API.DIRECT.GET.\(place)", bytes: request), what)
            if answer[NATSMessage.status] == "404" { return nil }
            guard let subject = answer["Nats-Subject"], let sequence = answer["Nats-Sequence"].flatMap({ UInt64($0) }),
                let time = answer["Nats-Time-Stamp"].flatMap(NATSStored.nanoseconds)
            else {
                let words = [NATSMessage.status, "Description"].compactMap { answer[$0] }.joined(separator: " ")
                throw FerryError(.natsFailed, "\(what) (\(words)). The server's log says more.")
            }
            let own: Set = ["Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp"]
            let message = NATSMessage(
                subject, headers: answer.headers.filter { !own.contains($0.name) }, bytes: answer.bytes)
            return NATSStored(message: message, sequence: sequence, time: time)
        }

        /// Removes a subject's messages up to a place.
        ///
        /// - Parameters:
        ///   - subject: with wildcards.
        ///   - sequence: the last place that is removed.
        ///   - stream: the stream's name.
        /// - Throws: `natsNotFound`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func remove(_ subject: String, through sequence: UInt64, in stream: String) async throws(FerryError) {
            try await perform { handle throws(FerryError) in
                var code = jsErrCode(0)
                let status = subject.withCString { subject in
                    var options = handle.options
                    options.Stream.Purge.Subject = subject
                    options.Stream.Purge.Sequence = sequence + 1
                    return js_PurgeStream(handle.jetStream, stream, &options, &code)
                }
                try require(status, code, "Messages of \(subject) cannot be removed from stream \(stream)")
            }
        }

        /// The subjects that a stream has messages of, in their order.
        ///
        /// - Parameters:
        ///   - pattern: those that match this.
        ///   - stream: the stream's name.
        /// - Throws: `natsNotFound`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func subjects(matching pattern: String, in stream: String) async throws(FerryError) -> [String] {
            try await perform { handle throws(FerryError) in
                var info: UnsafeMutablePointer<jsStreamInfo>?
                var code = jsErrCode(0)
                let status = pattern.withCString { pattern in
                    var options = handle.options
                    options.Stream.Info.SubjectsFilter = pattern
                    return js_GetStreamInfo(&info, handle.jetStream, stream, &options, &code)
                }
                if status == NATS_NOT_FOUND {
                    throw FerryError(.natsNotFound, "There is no stream \(stream). Create it, or check its name.")
                }
                try require(status, code, "The subjects of stream \(stream) cannot be listed")
                defer { jsStreamInfo_Destroy(info) }
                guard let list = info?.pointee.State.Subjects?.pointee else { return [] }
                return (0..<Int(max(0, list.Count))).compactMap { index in
                    list.List?[index].Subject.map { String(cString: $0) }
                }.sorted()
            }
        }
    }

    /// Following a stream from a place on.
    extension NATSConnection {
        /// The messages of some subjects after a place of a stream, in the stream's order, until the task that reads is cancelled. Of
        /// those that are not read in time the last 1 024 are kept.
        ///
        /// An ordered consumer of the server's: it sees that none is missing, and begins again after the last when the connection or the
        /// server was lost. A stream with the retention `work` has none.
        ///
        /// - Parameters:
        ///   - subject: with wildcards.
        ///   - sequence: the place; 0 for all.
        ///   - stream: the stream's name.
        /// - Throws: `natsNotFound`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func messages(
            of subject: String, after sequence: UInt64, in stream: String
        ) async throws(FerryError) -> AsyncStream<NATSMessage> {
            let (messages, continuation) = AsyncStream<NATSMessage>.makeStream(bufferingPolicy: .bufferingNewest(1024))
            let subscription = try await perform { handle throws(FerryError) in
                try NATSSubscription(handle, following: subject, after: sequence, in: stream) {
                    for message in $0 { continuation.yield(NATSMessage(message)) }
                }
            }
            continuation.onTermination = { _ in subscription.end() }
            return messages
        }
    }
#endif
