import Ferry
import FerrySimulator

extension PublishedFigure {
    /// A controller with one free parameter, which its own documentation names.
    struct Device: Sendable, Hashable {
        /// The fitted parameters.
        enum Parameter: Sendable, Hashable {
            /// Packets in each connection event, at any interval.
            case packets
            /// The part of the interval that packets fill.
            case share
            /// The event's length.
            case length
        }

        var name: String
        var parameter: Parameter

        /// Phones without data length extension: a fixed number of packets.
        static let phone27 = Device(name: "iPhone, data length 27", parameter: .packets)
        /// Phones with data length extension.
        static let phone = Device(name: "iPhone, data length 251", parameter: .packets)
        /// Nordic's S132 and S140: the event may fill the interval (SoftDevice Specification, connection timing).
        static let softDevice = Device(name: "Nordic SoftDevice", parameter: .share)
        /// Nordic's SoftDevice Controller in the nRF Connect SDK: the same.
        static let nrfConnect = Device(name: "nRF Connect SDK", parameter: .share)
        /// Adafruit's library, which sets the SoftDevice's event length (`configPrphConn`).
        static let adafruit = Device(name: "Adafruit nRF52 library", parameter: .length)

        static let all = [phone27, phone, softDevice, nrfConnect, adafruit]

        /// The figure that the parameter is fitted on: the device's first.
        var fitted: PublishedFigure? {
            PublishedFigure.all.first {
                if case .device(self) = $0.controller { true } else { false }
            }
        }

        /// The fitted controller at a connection interval in ms.
        func profile(at interval: Double) throws(FerryError) -> ControllerProfile {
            guard let value = try Self.fits[name]?.get() else { return .ideal }
            return candidate(value, interval)
        }

        /// The parameters' values by name: each is fitted once.
        private static let fits = Dictionary(
            uniqueKeysWithValues: all.map { device in
                (device.name, Result { () throws(FerryError) in try device.fit() })
            })

        /// The value that comes closest to the published figure; the middle one of several equal ones.
        private func fit() throws(FerryError) -> Double {
            guard let fitted else { return 1 }
            let values: [Double] =
                switch parameter {
                case .packets: (1...40).map(Double.init)
                case .share: (10...100).map { Double($0) / 100 }
                case .length: (10...200).map { Double($0) / 8 }.filter { $0 <= fitted.interval }
                }
            var best: [Double] = []
            var least = Double.infinity
            for value in values {
                let simulated = try fitted.simulated(candidate(value, fitted.interval), events: 8)
                let off = abs(simulated - fitted.published)
                if off < least { (best, least) = ([value], off) } else if off == least { best.append(value) }
            }
            return best.isEmpty ? 1 : best[best.count / 2]
        }

        private func candidate(_ value: Double, _ interval: Double) -> ControllerProfile {
            var profile = ControllerProfile(name: name, source: "fitted on figure \(fitted?.number ?? "none")")
            switch parameter {
            case .packets: profile.packetsPerEvent = Int(value)
            case .share: profile.eventLength = .microseconds(Int64((max(1.25, value * interval) * 1_000).rounded()))
            case .length: profile.eventLength = .microseconds(Int64((min(value, interval) * 1_000).rounded()))
            }
            return profile
        }
    }
}
