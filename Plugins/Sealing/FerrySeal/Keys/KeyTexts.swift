#if Seal
    public import Ferry

    /// What a file with this side's secret key holds.
    ///
    /// ```
    /// # Ferry secret key: keep it to yourself.
    /// # public key: ferry1...
    /// FERRY-SECRET-1...
    /// ```
    ///
    /// Lines that begin with `#` and empty lines say nothing. Exactly one line is the key.
    public enum KeyText {
        /// The most bytes of the file.
        public static let maximumSize = 4096

        /// The file's text.
        public static func write(_ key: SecretKey) -> String {
            "# Ferry secret key: keep it to yourself.\n# public key: \(key.publicKey)\n\(key.secretText)\n"
        }

        /// Reads the file's text.
        ///
        /// - Throws: `seal.malformedKey` with the line's number, and nothing of the line.
        public static func parse(_ text: String) throws(FerryError) -> SecretKey {
            var key: SecretKey?
            for (number, line) in lines(text) {
                guard key == nil else {
                    throw FerryError(.sealMalformedKey, "Line \(number) is a second key. A key file has one.")
                }
                do { key = try SecretKey(secretText: line) } catch {
                    throw FerryError(.sealMalformedKey, "Line \(number) is no secret key: \(error.message)")
                }
            }
            guard let key else {
                throw FerryError(.sealMalformedKey, "The file has no key. Make one with `ferry key`.")
            }
            return key
        }

        /// The lines that say something, with their numbers from 1.
        static func lines(_ text: String) -> [(Int, Substring)] {
            text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated().compactMap {
                index, line in
                let trimmed = trim(line)
                return trimmed.isEmpty || trimmed.first == "#" ? nil : (index + 1, trimmed)
            }
        }

        static func trim(_ text: Substring) -> Substring {
            var text = text
            while let first = text.first, first.isWhitespace { text.removeFirst() }
            while let last = text.last, last.isWhitespace { text.removeLast() }
            return text
        }
    }

    /// The keys that may come, each with a name: as ssh's `authorized_keys`.
    ///
    /// ```
    /// # one key a line, and a name up to the line's end
    /// ferry1... Anna's phone
    /// ```
    ///
    /// Lines that begin with `#` and empty lines say nothing and stay where they are.
    public struct AllowList: Sendable, Hashable {
        /// One key and what it is called.
        public struct Entry: Sendable, Hashable {
            /// The key.
            public let key: PublicKey
            /// Its name, for people: at most ``AllowList/maximumNameCount`` characters, without control characters. May be empty.
            public let name: String
        }

        /// The most keys. A longer file is refused.
        public static let maximumCount = 1 << 16
        /// The most characters of a name.
        public static let maximumNameCount = 128
        /// The most bytes of the file: for as many keys with long names.
        public static let maximumSize = 16 << 20

        /// The keys, in the order of the file.
        public private(set) var entries: [Entry] = []
        private var places: [PublicKey: Int] = [:]

        /// An empty list: it allows no key.
        public init() {}

        /// Reads a file's text.
        ///
        /// - Throws: `seal.malformedKey` with the line's number and the problem; then the whole list is refused.
        public init(parsing text: String) throws(FerryError) {
            for (number, line) in KeyText.lines(text) {
                let parts = line.split(maxSplits: 1, whereSeparator: \.isWhitespace)
                do throws(FerryError) {
                    let name = parts.count > 1 ? String(KeyText.trim(parts[1])) : ""
                    guard try add(PublicKey(text: parts[0]), name: name) else {
                        throw FerryError(.sealMalformedKey, "The key stands in the list already.")
                    }
                } catch {
                    throw FerryError(
                        .sealMalformedKey, "Line \(number) of the list of keys cannot be used. \(error.message)")
                }
            }
        }

        /// Adds a key. Returns false when the list has it already.
        ///
        /// - Throws: `seal.malformedKey` for a name that does not fit a line, and when the list is full.
        @discardableResult
        public mutating func add(_ key: PublicKey, name: String) throws(FerryError) -> Bool {
            guard places[key] == nil else { return false }
            guard entries.count < Self.maximumCount else {
                throw FerryError(
                    .sealMalformedKey, "The list has \(entries.count) keys, the most there may be. Remove some.")
            }
            guard name.count <= Self.maximumNameCount, name == String(KeyText.trim(name[...])),
                !name.unicodeScalars.contains(where: {
                    $0.properties.generalCategory == .control || $0.value == 0x2028 || $0.value == 0x2029
                })
            else {
                throw FerryError(
                    .sealMalformedKey,
                    "A key's name has \(name.count) characters; at most \(Self.maximumNameCount) in one line, without spaces around, fit."
                )
            }
            places[key] = entries.count
            entries.append(Entry(key: key, name: name))
            return true
        }

        /// Removes a key. Returns whether it was there.
        @discardableResult
        public mutating func remove(_ key: PublicKey) -> Bool {
            guard let place = places.removeValue(forKey: key) else { return false }
            entries.remove(at: place)
            for (other, at) in places where at > place { places[other] = at - 1 }
            return true
        }

        /// The entry of a key; nil for a stranger.
        public func entry(for key: PublicKey) -> Entry? { places[key].map { entries[$0] } }

        /// Whether a key may come.
        public func allows(_ key: PublicKey) -> Bool { places[key] != nil }

        /// The file's text: one key a line.
        public var text: String {
            entries.map { $0.name.isEmpty ? "\($0.key)\n" : "\($0.key) \($0.name)\n" }.joined()
        }
    }
#endif
