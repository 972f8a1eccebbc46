#if NATS
    import CNATS
    public import Ferry
    import Glibc

    /// What a stream must be so that nothing that was accepted is lost in it, and what a new one is made with.
    public struct NATSStream: Sendable, Hashable {
        /// Its name: letters, digits, `-` and `_`.
        public var name: String
        /// The subjects that it stores, with wildcards: `ferry.records.>`.
        public var subjects: [String]
        /// How long the stream remembers a message's name, so that it does not store a second one. At least as long as
        /// publishers keep its answers. Default 10 minutes.
        public var duplicateWindow = Duration.seconds(600)
        /// The most bytes, beyond which it refuses messages; nil for as much as the server has. A new stream's only.
        public var maximumBytes: Int64? = 1 << 30
        /// The most messages, beyond which it refuses others; nil for any number. A new stream's only.
        public var maximumMessages: Int64?
        /// On how many servers of a cluster it is kept, 1 to 5. A new stream's only.
        public var replicas = 1
        /// Whether its messages must be readable one by one (`allow_direct`). Default false.
        public var allowsDirectReading = false

        /// A stream.
        public init(_ name: String, subjects: [String]) {
            self.name = name
            self.subjects = subjects
        }

        /// What a server says of a stream.
        public struct State: Sendable, Hashable {
            /// The place of the last message; 0 when there never was one.
            public var lastSequence: UInt64 = 0
            /// How many messages it has.
            public var messages: UInt64 = 0
            /// How many bytes they have.
            public var bytes: UInt64 = 0
            /// The server that decides, where it is in a cluster.
            public var leader: String?
            /// When it was made, in nanoseconds since 1970: another stream of the same name has another one.
            public var created: Int64 = 0
            /// Whether messages leave it when they were read (retention `work` or `interest`), not at its limits alone.
            public var removesWhatIsRead = false
        }

        /// How far a consumer of a stream is.
        public struct Reader: Sendable, Hashable {
            /// Its name.
            public let name: String
            /// It has dealt with everything up to this place.
            public let acknowledgedThrough: UInt64
            /// How many messages it has been given, and has not dealt with.
            public let unacknowledged: Int
            /// How many messages it has not been given.
            public let pending: UInt64
        }

        /// A stream as it is on a server.
        struct Found: Sendable, Hashable {
            var subjects: [String]
            var traits: Traits
            /// The most that are kept of a subject; -1 for all.
            var messagesPerSubject: Int64
            /// In nanoseconds.
            var duplicateWindow: Int64
            var state = State()

            struct Traits: OptionSet, Sendable, Hashable {
                let rawValue: UInt8

                /// Refuses messages when it is full, and drops none.
                static let refusesNew = Traits(rawValue: 1)
                static let onDisk = Traits(rawValue: 2)
                /// Acknowledges published messages.
                static let answers = Traits(rawValue: 4)
                static let sealed = Traits(rawValue: 8)
                /// Lets messages be read one by one.
                static let directReading = Traits(rawValue: 16)
            }
        }

        /// - Throws: `natsWrongShape`, with what to do.
        func check(_ found: Found) throws(FerryError) {
            func refuse(_ what: String, _ fix: String) -> FerryError {
                FerryError(.natsWrongShape, "The stream \(name) \(what). \(fix)")
            }
            func edit(_ option: String) -> String {
                "Change it (nats stream edit \(name) \(option)), or name another stream."
            }
            let other = "Make another one, and name it; a stream cannot be changed in that."
            guard !found.traits.contains(.sealed) else { throw refuse("is sealed, and takes nothing", other) }
            guard found.traits.contains(.answers) else {
                throw refuse("does not acknowledge messages (no_ack)", edit("--ack"))
            }
            guard found.traits.contains(.directReading) || !allowsDirectReading else {
                throw refuse("does not let its messages be read one by one (allow_direct)", edit("--allow-direct"))
            }
            guard found.traits.contains(.refusesNew) else {
                throw refuse(
                    "drops its oldest messages when it is full (discard: old), though they may be unread",
                    edit("--discard=new"))
            }
            guard found.messagesPerSubject <= 0 else {
                throw refuse(
                    "keeps only \(found.messagesPerSubject) messages of a subject, and drops older ones",
                    edit("--max-msgs-per-subject=-1"))
            }
            guard found.traits.contains(.onDisk) else { throw refuse("is in the server's memory only", other) }
            guard found.duplicateWindow >= duplicateWindow.nanoseconds else {
                let seconds = duplicateWindow.components.seconds
                throw refuse(
                    "remembers messages' names for \(found.duplicateWindow / 1_000_000_000) s only, and \(seconds) s are needed",
                    edit("--dupe-window=\(seconds)s"))
            }
            for subject in subjects where !found.subjects.contains(where: { Self.covers($0, subject) }) {
                throw refuse(
                    "has the subjects \(found.subjects.joined(separator: ", ")), and not \(subject)",
                    edit("--subjects=\((found.subjects + [subject]).joined(separator: ","))"))
            }
        }

        /// Whether everything that one subject with wildcards matches is matched by another.
        static func covers(_ wide: String, _ narrow: String) -> Bool {
            let wide = wide.split(separator: "."), narrow = narrow.split(separator: ".")
            for (index, word) in wide.enumerated() {
                if word == ">" { return narrow.count > index }
                guard index < narrow.count, narrow[index] != ">" else { return false }
                guard word == "*" || word == narrow[index] else { return false }
            }
            return wide.count == narrow.count
        }
    }

    extension NATSConnection {
        /// What the server says of a stream now.
        ///
        /// - Throws: `natsNotFound`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func state(of stream: String) async throws(FerryError) -> NATSStream.State {
            try await perform { handle throws(FerryError) in try handle.find(stream).state }
        }

        /// How far each consumer of a stream is, in the order of their names.
        ///
        /// - Throws: `natsNotFound`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func consumers(of stream: String) async throws(FerryError) -> [NATSStream.Reader] {
            try await perform { handle throws(FerryError) in
                var list: UnsafeMutablePointer<jsConsumerInfoList>?
                var code = jsErrCode(0)
                let status = js_Consumers(&list, handle.jetStream, stream, nil, &code)
                guard status != NATS_NOT_FOUND else { return [] }
                try require(status, code, "The consumers of stream \(stream) cannot be listed")
                defer { jsConsumerInfoList_Destroy(list) }
                guard let list = list?.pointee else { return [] }
                return (0..<Int(list.Count)).compactMap { index in
                    guard let found = list.List?[index]?.pointee, let name = found.Name else { return nil }
                    return NATSStream.Reader(
                        name: String(cString: name), acknowledgedThrough: found.AckFloor.Stream,
                        unacknowledged: Int(found.NumAckPending), pending: found.NumPending)
                }.sorted { $0.name < $1.name }
            }
        }

        /// The place of the last message that a subject has in a stream; 0 when it has none.
        ///
        /// - Throws: `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func lastSequence(of subject: String, in stream: String) async throws(FerryError) -> UInt64 {
            try await last(of: subject, in: stream)?.sequence ?? 0
        }

        /// The last message that a subject has in a stream, as the stream's leader has it; nil when it has none.
        func last(of subject: String, in stream: String) async throws(FerryError) -> NATSStored? {
            try await perform { handle throws(FerryError) -> NATSStored? in
                var message: OpaquePointer?
                var code = jsErrCode(0)
                let status = js_GetLastMsg(&message, handle.jetStream, stream, subject, nil, &code)
                guard status != NATS_NOT_FOUND else { return nil }
                try require(status, code, "The last message of \(subject) cannot be looked at")
                defer { natsMsg_Destroy(message) }
                guard let message else { return nil }
                return NATSStored(
                    message: NATSMessage(message), sequence: natsMsg_GetSequence(message),
                    time: UInt64(max(0, natsMsg_GetTime(message))))
            }
        }

        /// Makes sure that a stream is there and as it must be.
        ///
        /// - Parameters:
        ///   - stream: what it must be.
        ///   - creates: whether to make one where there is none.
        /// - Throws: `natsWrongShape` for one that loses something, with what to do; `natsNotFound`, `natsNotReady`,
        ///   `natsStreamFull` where the server has no room for it, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        @discardableResult
        public func open(_ stream: NATSStream, creates: Bool = true) async throws(FerryError) -> NATSStream.State {
            try await perform { handle throws(FerryError) in
                do throws(FerryError) {
                    let found = try handle.find(stream.name)
                    try stream.check(found)
                    return found.state
                } catch {
                    guard error.code == .natsNotFound, creates else { throw error }
                }
                let found = try handle.make(stream)
                try stream.check(found)
                return found.state
            }
        }

        /// Removes a stream and its messages.
        ///
        /// - Throws: `natsNotFound`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func removeStream(_ name: String) async throws(FerryError) {
            try await perform { handle throws(FerryError) in
                var code = jsErrCode(0)
                let status = js_DeleteStream(handle.jetStream, name, nil, &code)
                try require(status, code, "The stream \(name) cannot be removed")
            }
        }
    }

    extension NATSHandle {
        private static var attempts: Int64 { 5 }

        /// For a request, with the time that an answer has.
        var options: jsOptions {
            var options = jsOptions()
            jsOptions_Init(&options)
            options.Wait = wait
            return options
        }

        func find(_ name: String) throws(FerryError) -> NATSStream.Found {
            var info: UnsafeMutablePointer<jsStreamInfo>?
            var code = jsErrCode(0)
            // A server that has just started may lose one of two requests that come at the same instant (nats-server 2.9.10), so
            // that this, which each gateway begins with, is asked a few times within its time.
            var options = options
            options.Wait = max(1, wait / Self.attempts)
            var status = js_GetStreamInfo(&info, jetStream, name, &options, &code)
            for _ in 1..<Self.attempts where status == NATS_TIMEOUT {
                status = js_GetStreamInfo(&info, jetStream, name, &options, &code)
            }
            if status == NATS_NOT_FOUND {
                throw FerryError(.natsNotFound, "There is no stream \(name). Create it, or check its name.")
            }
            try require(status, code, "The stream \(name) cannot be looked at")
            defer { jsStreamInfo_Destroy(info) }
            return try Self.found(info, name)
        }

        func make(_ stream: NATSStream) throws(FerryError) -> NATSStream.Found {
            let what = "The stream \(stream.name) cannot be made"
            var subjects: [UnsafePointer<CChar>?] = stream.subjects.map { UnsafePointer(strdup($0)) }
            defer { for subject in subjects { free(UnsafeMutablePointer(mutating: subject)) } }
            var info: UnsafeMutablePointer<jsStreamInfo>?
            var code = jsErrCode(0)
            let status = stream.name.withCString { name in
                subjects.withUnsafeMutableBufferPointer { subjects in
                    var wanted = jsStreamConfig()
                    jsStreamConfig_Init(&wanted)
                    wanted.Name = name
                    wanted.Subjects = subjects.baseAddress
                    wanted.SubjectsLen = Int32(subjects.count)
                    wanted.Discard = js_DiscardNew
                    wanted.Storage = js_FileStorage
                    wanted.Duplicates = stream.duplicateWindow.nanoseconds
                    wanted.MaxBytes = stream.maximumBytes ?? -1
                    wanted.MaxMsgs = stream.maximumMessages ?? -1
                    wanted.Replicas = Int64(stream.replicas)
                    wanted.AllowDirect = stream.allowsDirectReading
                    return js_AddStream(&info, jetStream, &wanted, nil, &code)
                }
            }
            try require(status, code, what)
            defer { jsStreamInfo_Destroy(info) }
            return try Self.found(info, stream.name)
        }

        private static func found(
            _ info: UnsafeMutablePointer<jsStreamInfo>?, _ name: String
        ) throws(FerryError) -> NATSStream.Found {
            guard let info = info?.pointee, let shape = info.Config?.pointee else {
                throw FerryError(.natsFailed, "The server says nothing of the stream \(name).")
            }
            var traits: NATSStream.Found.Traits = []
            if shape.Discard == js_DiscardNew { traits.insert(.refusesNew) }
            if shape.Storage == js_FileStorage { traits.insert(.onDisk) }
            if !shape.NoAck { traits.insert(.answers) }
            if shape.Sealed { traits.insert(.sealed) }
            if shape.AllowDirect { traits.insert(.directReading) }
            return NATSStream.Found(
                subjects: (0..<Int(max(0, shape.SubjectsLen))).compactMap { index in
                    shape.Subjects?[index].map { String(cString: $0) }
                },
                traits: traits, messagesPerSubject: shape.MaxMsgsPerSubject, duplicateWindow: shape.Duplicates,
                state: NATSStream.State(
                    lastSequence: info.State.LastSeq, messages: info.State.Msgs, bytes: info.State.Bytes,
                    leader: info.Cluster?.pointee.Leader.map { String(cString: $0) }, created: info.Created,
                    removesWhatIsRead: shape.Retention != js_LimitsPolicy))
        }
    }
#endif
