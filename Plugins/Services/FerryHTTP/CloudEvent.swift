#if HTTP
    import Ferry
    import FerryFleet
    import Foundation

    /// A record as an event in JSON (CloudEvents 1.0.2, JSON Event Format, 3).
    struct CloudEvent {
        /// The type of a request's body (JSON Event Format, 4; HTTP Protocol Binding, 3.3).
        static let batchType = "application/cloudevents-batch+json; charset=utf-8"

        private let contentType: String
        private let eventType: String
        private let isJSON: Bool

        init(contentType: String, eventType: String) {
            self.contentType = contentType
            self.eventType = eventType
            let plain = contentType.prefix { $0 != ";" }.lowercased()
            isJSON = plain.hasSuffix("/json") || plain.hasSuffix("+json")
        }

        /// The lane as a URI reference (RFC 3986, 4.2): a name's escapes are its own, and an empty name is an empty segment.
        static func source(_ lane: OutletMessage.Lane) -> String {
            func segment(_ text: String) -> String { text.isEmpty ? "" : OutletAddress.level(text) }
            return "ferry/records/\(segment(lane.sender))/\(segment(lane.stream))"
        }

        /// The event. Fields are extension attributes, by the letters and digits of their names in lower case (CloudEvents, 2.1).
        func bytes(_ message: OutletMessage) -> [UInt8] {
            var attributes: [String: String] = [:]
            for field in message.fields {
                let letters = field.name.lowercased().utf8.filter {
                    (0x61...0x7A).contains($0) || (0x30...0x39).contains($0)
                }
                attributes[String(decoding: letters, as: UTF8.self)] = field.value
            }
            // Names that mean something else.
            for name in ["", "data", "subject", "time", "dataschema"] { attributes[name] = nil }
            attributes["specversion"] = "1.0"
            attributes["id"] = message.key
            attributes["source"] = Self.source(message.lane)
            attributes["type"] = eventType
            let isData = isJSON && Self.isValue(message.bytes)
            attributes["datacontenttype"] = isJSON && !isData ? "application/octet-stream" : contentType
            if !isData { attributes["data_base64"] = Data(message.bytes).base64EncodedString() }
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            // Text is always encoded.
            guard var bytes = (try? encoder.encode(attributes)).map(Array.init) else { return [] }
            if isData {
                bytes.removeLast()
                bytes += Array(#","data":"#.utf8) + message.bytes + [0x7D]
            }
            return bytes
        }

        /// Whether the bytes are one value of JSON in UTF-8, so that they can stand in an event as they are. Foundation reads other
        /// encodings too, which have a NUL or a mark at their beginning, and a comma after the last value of an array or object.
        static func isValue(_ bytes: [UInt8]) -> Bool {
            guard !bytes.contains(0), bytes.first != 0xEF, String(validating: bytes, as: UTF8.self) != nil else {
                return false
            }
            return (try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) != nil
                && !hasLastComma(bytes)
        }

        /// Whether a comma stands before an end in what Foundation reads.
        private static func hasLastComma(_ bytes: [UInt8]) -> Bool {
            var isComma = false
            var rest = bytes[...]
            while let byte = rest.popFirst() {
                switch byte {
                // White space.
                case 0x20, 0x09, 0x0A, 0x0D: break
                case 0x5D where isComma, 0x7D where isComma: return true
                case 0x22:
                    isComma = false
                    while let byte = rest.popFirst(), byte != 0x22 { if byte == 0x5C { _ = rest.popFirst() } }
                default: isComma = byte == 0x2C
                }
            }
            return false
        }

        /// The body of a request.
        static func batch(_ events: [[UInt8]]) -> [UInt8] {
            var body: [UInt8] = [0x5B]
            body.reserveCapacity(events.reduce(2) { $0 + $1.count + 1 })
            for (index, event) in events.enumerated() {
                if index > 0 { body.append(0x2C) }
                body += event
            }
            body.append(0x5D)
            return body
        }
    }
#endif
