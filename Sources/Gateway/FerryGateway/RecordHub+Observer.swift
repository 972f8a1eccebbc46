#if NATS && Records
    import Ferry
    public import FerryRecords

    extension RecordHub {
        /// Tells an observer of each visit that is over by ``GatewayEvent/visitEnded(peer:_:)``, in place of the observer set
        /// by `onVisit`. A peer that came and left without a word is called what its link says it is.
        public func tellOfVisits(_ observer: any GatewayObserver) {
            onVisit { visit in
                let told =
                    switch visit.result {
                    case .success(let summary): GatewayEvent.Visit(summary, lasting: visit.duration)
                    case .failure(let error): GatewayEvent.Visit(error, lasting: visit.duration)
                    }
                observer.observe(.visitEnded(peer: visit.peer ?? visit.identity.description, told))
            }
        }
    }
#endif
