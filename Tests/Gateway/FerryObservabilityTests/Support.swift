#if Observability
    import InMemoryTracing
    import Synchronization
    import Tracing

    /// An in-memory tracer that speaks W3C's Trace Context.
    struct ContextTracer: Tracer {
        let memory: InMemoryTracer

        init() {
            let generator = SpanIDs()
            memory = InMemoryTracer(
                idGenerator: InMemoryTracer.IDGenerator(
                    nextTraceID: { "0000000000000000" + generator.next() }, nextSpanID: { generator.next() }))
        }

        func startSpan<Instant: TracerInstant>(
            _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
            at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
        ) -> InMemorySpan {
            memory.startSpan(
                operationName, context: context(), ofKind: kind, at: instant(), function: function, file: fileID,
                line: line)
        }

        func forceFlush() {}

        func inject<Carrier, Inject: Injector>(
            _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
        ) where Inject.Carrier == Carrier {
            guard let span = context.inMemorySpanContext else { return }
            injector.inject("00-\(span.traceID)-\(span.spanID)-01", forKey: "traceparent", into: &carrier)
        }

        func extract<Carrier, Extract: Extractor>(
            _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
        ) where Extract.Carrier == Carrier {
            let words = extractor.extract(key: "traceparent", from: carrier)?.split(separator: "-").map(String.init)
            guard let words, words.count == 4, words[3] == "01" else { return }
            context.inMemorySpanContext = InMemorySpanContext(
                traceID: words[1], spanID: words[2], parentSpanID: nil)
        }
    }

    /// 16 digits each.
    private final class SpanIDs: Sendable {
        private let last = Mutex(0)

        func next() -> String {
            let number = last.withLock { last in
                last += 1
                return last
            }
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
    }
#endif
