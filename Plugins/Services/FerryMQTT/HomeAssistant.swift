#if MQTT
    package import Ferry
    import FerryFleet
    import Foundation

    /// What Home Assistant is told of the records, so that it makes sensors of them by itself.
    ///
    /// Before the first record of a sender's stream each sensor of the stream is described by a retained message at
    /// `PREFIX/sensor/OBJECT/config`, once a connection (home-assistant.io/integrations/mqtt, MQTT discovery). The records are JSON
    /// objects. A sensor that is left out later stays there until an empty retained message takes its description away.
    public struct HomeAssistant: Sendable, Hashable {
        /// One field of a stream's records.
        public struct Sensor: Sendable, Hashable {
            /// The stream.
            public var stream: String
            /// Where the value stands: a name, or several with a dot between them, from the outside in.
            public var field: String
            /// What people read.
            public var name: String
            /// The unit of measurement, such as `°C`.
            public var unit: String?
            /// Home Assistant's class of the device, such as `temperature`: lower-case letters and `_`.
            public var deviceClass: String?
            /// How values become statistics.
            public var stateClass: StateClass?
            /// How long a value counts, 1 s or more; nil for ever.
            public var expireAfter: Duration?

            /// A sensor with a name.
            public init(stream: String, field: String, name: String) {
                (self.stream, self.field, self.name) = (stream, field, name)
            }
        }

        /// How values become statistics (developers.home-assistant.io, Sensor entity).
        public enum StateClass: String, Sendable, Hashable, CaseIterable {
            case measurement, total
            case totalIncreasing = "total_increasing"
        }

        /// What the topics of discovery begin with, as Home Assistant has it. Default `homeassistant`.
        public var prefix = "homeassistant"
        /// At most 256.
        public var sensors: [Sensor]

        /// Describes these sensors.
        public init(sensors: [Sensor]) { self.sensors = sensors }

        package func check() throws(FerryError) {
            func refuse(_ text: String) -> FerryError { FerryError(.invalidConfiguration, text) }
            guard MQTTConfiguration.canBeginTopics(prefix) else {
                throw refuse(
                    "\(prefix.debugDescription) cannot begin Home Assistant's topics. Give its discovery prefix, such as homeassistant."
                )
            }
            guard (1...256).contains(sensors.count) else {
                throw refuse("Home Assistant is to be told of \(sensors.count) sensors. Give 1 to 256.")
            }
            for sensor in sensors {
                let place = "The sensor \(sensor.name.debugDescription)"
                guard !sensor.name.isEmpty, sensor.name.utf8.count <= 255 else {
                    throw refuse("A sensor has no name, or one of more than 255 bytes. Give it one.")
                }
                // They stand between quotes in a template of Jinja.
                let names = sensor.field.split(separator: ".", omittingEmptySubsequences: false)
                let isPlain = names.allSatisfy { name in
                    !name.isEmpty && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x27 && $0 != 0x5C && $0 != 0x7F }
                }
                guard isPlain, sensor.field.utf8.count <= 255 else {
                    throw refuse(
                        "\(place) has the field \(sensor.field.debugDescription). Give a name, or names with a dot between them, without "
                            + "quotes and backslashes.")
                }
                guard
                    sensor.deviceClass?.utf8.allSatisfy({
                        (0x61...0x7A).contains($0) || $0 == 0x5F || (0x30...0x39).contains($0)
                    }) ?? true,
                    sensor.deviceClass?.isEmpty != true
                else {
                    throw refuse(
                        "\(place) has the device class \(sensor.deviceClass.debugDescription). Give one of Home Assistant's, such as temperature."
                    )
                }
                guard sensor.expireAfter.map({ $0 >= .seconds(1) }) ?? true else {
                    throw refuse("\(place) has values that count for \(sensor.expireAfter ?? .zero). Give 1 s or more.")
                }
            }
            let places = sensors.map { [$0.stream, $0.field] }
            guard Set(places).count == places.count else {
                throw refuse("Two sensors have the same stream and field. Leave one of them out.")
            }
        }

        /// A retained message that describes a sensor.
        struct Description {
            let topic: String
            let payload: [UInt8]
        }

        /// The descriptions of a lane's sensors.
        ///
        /// - Parameter topic: where its records are published.
        func descriptions(of lane: OutletMessage.Lane, at topic: String) -> [Description] {
            sensors.filter { $0.stream == lane.stream }.compactMap { sensor in
                let object = Self.object(["ferry", lane.sender, lane.stream, sensor.field])
                let path = sensor.field.split(separator: ".").map { "['\($0)']" }.joined()
                let config = Config(
                    name: sensor.name, unique_id: object, state_topic: topic, value_template: "{{ value_json\(path) }}",
                    unit_of_measurement: sensor.unit, device_class: sensor.deviceClass,
                    state_class: sensor.stateClass?.rawValue,
                    expire_after: sensor.expireAfter.map { Int($0.components.seconds) },
                    device: .init(identifiers: [Self.object(["ferry", lane.sender])], name: lane.sender))
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                // Text and whole numbers are always JSON.
                guard let data = try? encoder.encode(config) else { return nil }
                return Description(topic: "\(prefix)/sensor/\(object)/config", payload: Array(data))
            }
        }

        /// The keys are Home Assistant's.
        private struct Config: Encodable {
            struct Device: Encodable {
                let identifiers: [String]
                let name: String
            }

            let name: String
            let unique_id: String
            let state_topic: String
            let value_template: String
            let unit_of_measurement: String?
            let device_class: String?
            let state_class: String?
            let expire_after: Int?
            let qos = 1
            let device: Device
        }

        /// Names as one of Home Assistant's object identifiers, which have letters, digits, `_` and `-`; other names give another one.
        static func object(_ names: [String]) -> String {
            names.map { name in
                name.isEmpty
                    ? "_z"
                    : OutletAddress.level(name).replacing("_", with: "__").replacing("%", with: "_")
            }.joined(separator: "_-")
        }
    }
#endif
