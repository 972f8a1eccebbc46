#if NATS && Records
    import CNATS
    import FerryNATS
    import Foundation

    /// Publishes the same messages with libnats and nothing else: what is measured against.
    ///
    /// It has its texts ready as C wants them, and knows all messages before it begins.
    final class BarePublisher {
        private struct Text {
            let pointer: UnsafeMutablePointer<CChar>
            init(_ text: String) throws {
                guard let copy = strdup(text) else { throw Failure(text: "no memory") }
                pointer = copy
            }
        }
        private struct Prepared {
            let subject: Text
            let headers: [(name: Text, value: Text)]
            let id: Text
            let bytes: [UInt8]
            let subjectHash: String
        }

        private let messages: [Prepared]
        private let stream: Text

        /// - Parameters:
        ///   - messages: as they came out of a stream.
        ///   - stream: the stream to publish to, which has the subjects that begin with its name.
        init(_ messages: [NATSMessage], to stream: String) throws {
            self.stream = try Text(stream)
            self.messages = try messages.map { message in
                let rest = message.subject.drop { $0 != "." }
                return Prepared(
                    subject: try Text(stream + rest),
                    headers: try message.headers.filter { !$0.name.hasPrefix("Nats-") }.map {
                        (try Text($0.name), try Text($0.value))
                    }, id: try Text(message["Nats-Msg-Id"] ?? ""), bytes: message.bytes, subjectHash: String(rest))
            }
        }

        deinit {
            for message in messages {
                for text in [message.subject, message.id] + message.headers.flatMap({ [$0.name, $0.value] }) {
                    free(text.pointer)
                }
            }
            free(stream.pointer)
        }

        /// Publishes all of them to an empty stream, and waits until all were answered.
        ///
        /// - Parameter naming: whether each names the place of the one before it in its subject, as a gateway's do. Here it is
        ///   known beforehand, since nobody else publishes.
        func publish(to server: String, inFlight: Int64, naming: Bool) throws {
            func require(_ status: natsStatus, _ what: String) throws {
                guard status == NATS_OK else {
                    throw Failure(text: "\(what): \(natsStatus_GetText(status).map { String(cString: $0) } ?? "?")")
                }
            }
            var places = [UInt64](repeating: 0, count: messages.count)
            if naming {
                var last: [String: UInt64] = [:]
                for (index, message) in messages.enumerated() {
                    places[index] = last[message.subjectHash] ?? 0
                    last[message.subjectHash] = UInt64(index + 1)
                }
            }
            var connection: OpaquePointer?
            try require(natsConnection_ConnectTo(&connection, server), "connect")
            defer { natsConnection_Destroy(connection) }
            var settings = jsOptions()
            jsOptions_Init(&settings)
            settings.PublishAsync.MaxPending = inFlight
            settings.PublishAsync.StallWait = 60_000
            var context: OpaquePointer?
            try require(natsConnection_JetStream(&context, connection, &settings), "JetStream")
            defer { jsCtx_Destroy(context) }
            for (index, prepared) in messages.enumerated() {
                var message: OpaquePointer?
                let status = prepared.bytes.withUnsafeBytes {
                    natsMsg_Create(
                        &message, prepared.subject.pointer, nil, $0.baseAddress?.assumingMemoryBound(to: CChar.self),
                        Int32($0.count))
                }
                try require(status, "message")
                for (name, value) in prepared.headers {
                    try require(natsMsgHeader_Set(message, name.pointer, value.pointer), "header")
                }
                var options = jsPubOptions()
                jsPubOptions_Init(&options)
                options.MsgId = UnsafePointer(prepared.id.pointer)
                options.ExpectStream = UnsafePointer(stream.pointer)
                if naming {
                    options.ExpectLastSubjectSeq = places[index]
                    options.ExpectNoMessage = places[index] == 0
                }
                try require(js_PublishMsgAsync(context, &message, &options), "publish")
            }
            var end = jsPubOptions()
            jsPubOptions_Init(&end)
            end.MaxWait = 60_000
            try require(js_PublishAsyncComplete(context, &end), "answers")
        }
    }
#endif
