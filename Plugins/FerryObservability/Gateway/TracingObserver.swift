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
    /// `ferry.place`, its place in the stream, and `ferry.duplicate`. When a record is put off, the span has the event `ferry.putOff`, and
    /// goes on. It ends with an error when the server can never take the record, or when everything is read once more.
    ///
    /// The message carries what the tracer injects: `traceparent`, with tracers that know W3C's Trace Context. ``RecordTracing`` says
    /// which trace it is.
    public final class TracingObserver: GatewayObserver {
        private let tracing: RecordTracing
        private let gateway: String
        private let mostOpen: Int
        private let open = Mutex<[String: any Span]>([:])

        /// - Parameters:
        ///   - gateway: the gateway's name.
        ///   - tracer: what makes spans; by default the one that the program has chosen.
        ///   - sampling: which records are traced: the same in all processes.
        ///   - mostOpen: how many spans may be open; what comes beyond them is not traced. Default 16 384.
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
                        attributes["ferry.place"] = Int64(clamping: publication.sequence)
                        attributes["ferry.duplicate"] = publication.isDuplicate
                    }
                    span.end()
                }
            case .putOff(let putOff):
                for one in putOff where one.isHeld { take(one.record.name)?.fail(one.message) }
                for one in putOff where !one.isHeld {
                    span(of: one.record.name)?.addEvent(
                        SpanEvent(name: "ferry.putOff", attributes: ["ferry.error": "\(one.error)"]))
                }
            case .readingBegins:
                let spans = open.withLock { open in
                    defer { open = [:] }
                    return open.values
                }
                for span in spans { span.fail("It is read once more.") }
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
            open.withLock { $0.updateValue(span, forKey: record.name) }?.fail("It is read once more.")
        }

        private func span(of name: String) -> (any Span)? {
            guard tracing.sampling.takes(name) else { return nil }
            return open.withLock { $0[name] }
        }

        private func take(_ name: String) -> (any Span)? {
            guard tracing.sampling.takes(name) else { return nil }
            return open.withLock { $0.removeValue(forKey: name) }
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
