#if Observability && Records
    public import Ferry
    public import FerryRecords
    public import Tracing

    /// Spans for single records, from the peer's disk to the stream and on: each record's are in one trace, whose id follows
    /// from the record's name (``RecordSampling``). Nothing of it goes over the air.
    ///
    ///     let tracing = RecordTracing(sampling: .oneIn(100))
    ///     let id = try await tracing.append { () async throws(FerryError) in
    ///         try await store.append(bytes, to: "collector")
    ///     }
    ///
    /// Tracers that read `traceparent` put the spans of all processes into that one trace. With others each process has traces of its
    /// own, and the attribute `ferry.record`, the record's name, joins them.
    public struct RecordTracing: Sendable {
        /// Which records are traced.
        public let sampling: RecordSampling
        let tracer: any Tracer

        /// - Parameters:
        ///   - tracer: what makes spans; by default the one that the program has chosen.
        ///   - sampling: which records are traced: the same in all processes.
        public init(tracer: any Tracer = InstrumentationSystem.tracer, sampling: RecordSampling) {
            self.tracer = tracer
            self.sampling = sampling
        }

        /// Appends a record, and makes the span `ferry.append` of it: until it is on this side's disk. Its name is known when it
        /// is there; so a record that was not appended has no span.
        ///
        /// - Throws: what `body` throws.
        public func append(_ body: () async throws(FerryError) -> RecordID) async throws(FerryError) -> RecordID {
            let began = DefaultTracerClock.now
            let id = try await body()
            guard let context = context(of: id) else { return id }
            let span = tracer.startSpan("ferry.append", context: context, ofKind: .producer, at: began)
            span.attributes["ferry.record"] = id.name
            span.end()
            return id
        }

        /// What the spans of a record begin with, such as that of an app that takes it out of its inbox; nil for a record that is not
        /// traced.
        public func context(of record: RecordID) -> ServiceContext? { context(of: record.name) }

        func context(of name: String) -> ServiceContext? {
            guard sampling.takes(name) else { return nil }
            var context = ServiceContext.topLevel
            tracer.extract(
                ["traceparent": RecordSampling.traceparent(of: name)], into: &context, using: WordsExtractor())
            return context
        }
    }

    /// Reads headers out of a dictionary.
    private struct WordsExtractor: Extractor {
        func extract(key: String, from carrier: [String: String]) -> String? { carrier[key.lowercased()] }
    }
#endif
