#if NATS
    import CNATS
    public import Ferry

    /// A message as a stream keeps it.
    public struct NATSStored: Sendable, Hashable {
        /// The message.
        public let message: NATSMessage
        /// Its place in the stream: 1 and more.
        public let sequence: UInt64
        /// When the stream took it, in nanoseconds since 1970 by its server's clock.
        public let time: UInt64
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
            try await perform { handle throws(FerryError) -> NATSStored? in
                var message: OpaquePointer?
                let status = subject.withCString { subject in
                    var which = jsDirectGetMsgOptions()
                    jsDirectGetMsgOptions_Init(&which)
                    which.Sequence = max(1, sequence)
                    which.NextBySubject = subject
                    return js_DirectGetMsg(&message, handle.jetStream, stream, nil, &which)
                }
                guard status != NATS_NOT_FOUND else { return nil }
                try require(status, "Stream \(stream) cannot be read")
                defer { natsMsg_Destroy(message) }
                guard let message else { return nil }
                return NATSStored(
                    message: NATSMessage(message), sequence: natsMsg_GetSequence(message),
                    time: UInt64(max(0, natsMsg_GetTime(message))))
            }
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
#endif
