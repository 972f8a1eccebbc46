#if NATS && Records
    /// Figures in Prometheus' text format (version 0.0.4): a value without I/O.
    public struct MetricsText: Sendable, Hashable, CustomStringConvertible {
        /// What a figure does in time.
        public enum Kind: String, Sendable {
            /// It only grows, until the process ends.
            case counter
            /// It goes up and down.
            case gauge
            /// How many values are as large as each bound at most.
            case histogram
        }

        /// The text, which ends with a line feed.
        public private(set) var description = ""

        /// Nothing.
        public init() {}

        /// Adds a figure.
        ///
        /// - Parameters:
        ///   - name: letters, digits and underscores; a counter's ends with `_total`.
        ///   - kind: what it does in time.
        ///   - help: what it is, one line.
        ///   - values: one value for each set of labels.
        public mutating func add(
            _ name: String, _ kind: Kind, _ help: String, _ values: [(labels: [(String, String)], value: Int)]
        ) {
            description += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
            for (labels, value) in values {
                let labels = labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
                let end = kind == .histogram ? "_bucket" : ""
                description += name + end + (labels.isEmpty ? "" : "{\(labels)}") + " \(value)\n"
            }
        }

        mutating func add(line: String) { description += line + "\n" }

        /// Adds a figure without labels.
        public mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: Int) {
            add(name, kind, help, [([], value)])
        }

        private static func escaped(_ text: String) -> String {
            var escaped = ""
            for character in text.unicodeScalars {
                switch character {
                case "\\": escaped += "\\\\"
                case "\"": escaped += "\\\""
                case "\n": escaped += "\\n"
                default: escaped.unicodeScalars.append(character)
                }
            }
            return escaped
        }
    }

    extension MetricsText {
        /// What a gateway's figures are called; `Documentation/Gateway.md` has the table.
        public mutating func add(_ status: Gateway.Status) {
            add("ferry_gateway_connected", .gauge, "Whether records can be published now.", status.isConnected ? 1 : 0)
            add(
                "ferry_gateway_published_total", .counter, "Records that the stream has answered for.", status.published
            )
            add("ferry_gateway_duplicates_total", .counter, "Of those, how many it had already.", status.duplicates)
            add("ferry_gateway_repetitions_total", .counter, "How often all was published again.", status.repetitions)
            add("ferry_gateway_kept_records", .gauge, "Records that are kept though the stream has them.", status.kept)
            add("ferry_gateway_store_records", .gauge, "Records in the store, those included.", status.waiting)
            add(
                "ferry_gateway_oldest_record_seconds", .gauge,
                "How long the oldest record has waited that the stream has not answered for.",
                Int(status.oldest.components.seconds))
            add(
                "ferry_gateway_held_streams", .gauge, "Streams of peers with a record that can never be taken.",
                status.held)
        }

        /// What the figures of messages for peers are called.
        public mutating func add(_ status: Downlink.Status) {
            add("ferry_downlink_connected", .gauge, "Whether messages can be read now.", status.isConnected ? 1 : 0)
            add("ferry_downlink_carried_total", .counter, "Messages that came to peers' disks.", status.carried)
            add("ferry_downlink_messages", .gauge, "Messages in the store, for peers.", status.onTheirWay)
        }

        /// What the figures of a gateway's leases are called.
        public mutating func add(_ status: LeaseKeeper.Status) {
            add("ferry_fleet_connected", .gauge, "Whether leases can be asked for now.", status.isConnected ? 1 : 0)
            add("ferry_fleet_owned_peers", .gauge, "Peers whose lease this gateway has.", status.owned)
            add("ferry_fleet_tenures_total", .counter, "Leases that this gateway got.", status.begun)
            add(
                "ferry_fleet_requests_total", .counter, "Requests to the bucket of leases, by how they ended.",
                [
                    ([("result", "stored")], status.stored), ([("result", "refused")], status.refused),
                    ([("result", "unanswered")], status.unanswered),
                ])
            add("ferry_fleet_late_stops_total", .counter, "Peers let go later than their lease allowed.", status.late)
        }
    }
#endif
