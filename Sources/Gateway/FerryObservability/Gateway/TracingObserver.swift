#if Observability && NATS && Records
    import Ferry
    public import FerryGateway
    public import FerryNATS
    import Synchronization
    public import Tracing

    /// Makes a span of a record's way through a gateway: `ferry.publish`, from when it was read from the store, which is when it has
    /// arrived or the stream can take it, until the stream's answer.
    ///
    /// It has the attributes `ferry.record` (the record's name), `ferry.peer`, `ferry.gateway`, in a fleet `ferry.token`, and in the end
    /// `ferry.place`, its place in the stream, and `ferry.duplicate`. When a record is put off, the span has the event `ferry.putOff`, 16 times
    /// at most, and goes on. It ends with an error when the server can never take the record, when everything is read once more, and when
    /// the gateway ends.
    ///
    /// The message carries what the tracer injects: `traceparent`, with tracers that know W3C's Trace Context. ``RecordTracing`` says
    /// which trace it is.
    public final class TracingObserver: GatewayObserver {
        private let tracing: RecordTracing
        private let gateway: String
        private let mostOpen: Int
        private let open = Mutex<[String: OpenSpan]>([:])

        private struct OpenSpan {
            let span: any Span
            /// How many more events it gets, of a record that is put off for hours.
            var events = 16
        }

        /// - Parameters:
        ///   - gateway: the gateway's name.
        ///   - tracer: what makes spans; by default the one that the program has chosen.
        ///   - sampling: which records are traced: the same in all processes.
        ///   - mostOpen: the most open spans; records beyond them are not traced. Default 16 384.
        public init(
            gateway: String, tracer: any Tracer = InstrumentationSystem.tracer, sampling: RecordSampling,
            mostOpen: Int = 16_384
        ) {
            self.gateway = gateway
            tracing = RecordTracing(tracer: tracer, sampling: sampling)
            self.mostOpen = mostOpen
        }

        /// Begins, marks and ends spans.
        public func observe(_ event: GatewayEvent) {
            guard tracing.sampling != .none else { return }
            switch event {
            case .read(let records): for record in records { begin(record) }
            case .published(let publications):
                for publication in publications {
                    guard let span = take(publication.record.name) else { continue }
                    span.updateAttributes { attributes in
                        if let place = publication.sequence { attributes["ferry.place"] = Int64(clamping: place) }
                        attributes["ferry.duplicate"] = publication.isDuplicate
                    }
                    span.end()
                }
            case .putOff(let putOff):
                for one in putOff {
                    if one.isHeld { take(one.record.name)?.fail(one.message) } else { mark(one) }
                }
            case .readingBegins: endAll("It is read once more.")
            case .disconnected(.stream, isEnding: true): endAll("The gateway ends.")
            default: break
            }
        }

        /// What the tracer injects, where the record is traced.
        public func headers(for record: GatewayEvent.Record) -> [NATSMessage.Header] {
            guard let span = span(of: record.name) else { return [] }
            var headers: [NATSMessage.Header] = []
            tracing.tracer.inject(span.context, into: &headers, using: HeaderInjector())
            return headers
        }

        private func begin(_ record: GatewayEvent.Record) {
            guard let context = tracing.context(of: record.name), open.withLock({ $0.count < mostOpen }) else { return }
            let span: any Span = tracing.tracer.startSpan("ferry.publish", context: context, ofKind: .producer)
            span.updateAttributes { attributes in
                attributes["ferry.record"] = record.name
                attributes["ferry.peer"] = record.peer
                attributes["ferry.gateway"] = gateway
                if let token = record.token { attributes["ferry.token"] = "\(token)" }
            }
            open.withLock { $0.updateValue(OpenSpan(span: span), forKey: record.name) }?.span.fail(
                "It is read once more.")
        }

        private func mark(_ putOff: GatewayEvent.PutOff) {
            guard tracing.sampling.takes(putOff.record.name) else { return }
            let span = open.withLock { open -> (any Span)? in
                guard let found = open[putOff.record.name], found.events > 0 else { return nil }
                open[putOff.record.name]?.events -= 1
                return found.span
            }
            span?.addEvent(SpanEvent(name: "ferry.putOff", attributes: ["ferry.error": "\(putOff.error)"]))
        }

        private func endAll(_ reason: String) {
            let all = open.withLock { open in
                defer { open = [:] }
                return open.values
            }
            for one in all { one.span.fail(reason) }
        }

        private func span(of name: String) -> (any Span)? {
            guard tracing.sampling.takes(name) else { return nil }
            return open.withLock { $0[name]?.span }
        }

        private func take(_ name: String) -> (any Span)? {
            guard tracing.sampling.takes(name) else { return nil }
            return open.withLock { $0.removeValue(forKey: name)?.span }
        }
    }

    extension Span {
        fileprivate func fail(_ message: String) {
            setStatus(SpanStatus(code: .error, message: message))
            end()
        }
    }

    private struct HeaderInjector: Injector {
        func inject(_ value: String, forKey key: String, into carrier: inout [NATSMessage.Header]) {
            carrier.append(NATSMessage.Header(key, value))
        }
    }
#endif
