import Ferry

#if hasFeature(Embedded)
    /// The places of messages, by their numbers. Firmware has few messages: a search costs less than the code of hash tables, which
    /// also computes with floating-point numbers.
    struct MessageIndices {
        private var pairs: [(id: MessageID, index: Int32)] = []

        var values: some Sequence<Int32> { pairs.lazy.map { $0.index } }

        subscript(id: MessageID) -> Int32? {
            get { pairs.first { $0.id == id }?.index }
            set {
                let place = pairs.firstIndex { $0.id == id }
                switch (place, newValue) {
                case (let place?, let index?): pairs[place].index = index
                case (let place?, nil): pairs.remove(at: place)
                case (nil, let index?): pairs.append((id, index))
                case (nil, nil): break
                }
            }
        }
    }
#else
    /// The places of messages, by their numbers.
    typealias MessageIndices = [MessageID: Int32]
#endif
