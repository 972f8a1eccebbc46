package import Ferry
package import FerryBluetooth
package import FerrySimulator

/// A throughput service that other people's firmware offers.
package enum PeerService: String, Codable, CaseIterable, Sendable {
    /// The GATT Throughput Service of the nRF Connect SDK (include/bluetooth/services/throughput.h): writes are counted,
    /// one of 1 byte begins anew, and a read tells count, bytes and bits a second.
    case nordic
    /// Zephyr's sample `ble_gatt_tput`, and Infineon's examples with the same service: it notifies while a client is
    /// subscribed, and takes writes.
    case tput
    /// `bumble-bench --mode gatt-server`: packets with a type, flags, a number and a time, and an answer to the last one. With
    /// `--scenario receive` it offers write requests alone, with `send` it notifies (bumble/apps/bench.py).
    case bumble

    /// The service to look for.
    package var service: BluetoothUUID {
        switch self {
        case .nordic: BluetoothUUID(0x0483_DADD_6C9D_6CA9_5D41_03AD_4FFF_4ABB as UInt128)
        case .tput: BluetoothUUID(0x1AEC_0D20_5D1E_43D3_AF17_0807_32CB_7BCC as UInt128)
        case .bumble: BluetoothUUID(0x50DB_505C_8AC4_4738_8448_3B1D_9CC0_9CC5 as UInt128)
        }
    }

    /// The characteristic that is written.
    package var sink: BluetoothUUID {
        switch self {
        case .nordic: BluetoothUUID(0x1524 as UInt16)
        case .tput: BluetoothUUID(0xD470_7B26_85A3_4465_ADE4_AFB3_70CF_58C7 as UInt128)
        case .bumble: BluetoothUUID(0xE789_C754_41A1_45F4_A948_A0A1_A90D_BA53 as UInt128)
        }
    }

    /// The characteristic that notifies, if any.
    package var source: BluetoothUUID? {
        switch self {
        case .nordic: nil
        case .tput: BluetoothUUID(0xF7B0_1381_91E9_4D30_9E78_8467_5921_251E as UInt128)
        case .bumble: BluetoothUUID(0x016A_2CC7_E14B_4819_935F_1F56_EAE4_098D as UInt128)
        }
    }

    /// The ways in which bytes can be measured.
    package var directions: [DirectionChoice] { self == .nordic ? [.write] : [.write, .notify] }
    /// Those that are measured unless one is asked for: bumble-bench's scenario has one of the two.
    package var usual: [DirectionChoice] { self == .tput ? [.write, .notify] : [.write] }
}

/// One direction's measurement.
package struct PeerOutcome: Codable, Sendable {
    package var service: PeerService
    package var direction: DirectionChoice
    package var attMTU: Int
    /// Bytes of each value.
    package var valueLength: Int
    /// Whether each write was answered, because the peer takes no others.
    package var isAcknowledged: Bool
    /// Bytes that arrived.
    var bytes: Int
    package var seconds: Double
    /// In kbit/s.
    package var goodput: Double
    /// What the peer measured of the same, in kbit/s, where it tells.
    package var byPeer: Double?

    package init(
        service: PeerService, direction: DirectionChoice, attMTU: Int, valueLength: Int, isAcknowledged: Bool,
        bytes: Int, seconds: Double, goodput: Double, byPeer: Double?
    ) {
        self.service = service
        self.direction = direction
        self.attMTU = attMTU
        self.valueLength = valueLength
        self.isAcknowledged = isAcknowledged
        self.bytes = bytes
        self.seconds = seconds
        self.goodput = goodput
        self.byPeer = byPeer
    }

    /// What the simulator gives for the same values, in kbit/s.
    package func simulated(_ parameters: LinkParameters, _ profile: ControllerProfile) throws(FerryError) -> Double {
        var own = parameters
        own.attMTU = attMTU
        return try Self.simulated(direction, isAcknowledged: isAcknowledged, valueLength, own, profile)
    }

    /// What the simulator gives for values of `valueLength` bytes, in kbit/s.
    static func simulated(
        _ direction: DirectionChoice, isAcknowledged: Bool, _ valueLength: Int, _ parameters: LinkParameters,
        _ profile: ControllerProfile
    ) throws(FerryError) -> Double {
        let traffic: Traffic =
            switch (direction, isAcknowledged) {
            case (.write, true): .writeRequests(valueLength: valueLength)
            case (.write, false): .writeCommands(valueLength: valueLength)
            case (.notify, _): .notifications(valueLength: valueLength)
            }
        let events = max(20, min(200, Int(2_000 / parameters.connectionInterval.milliseconds)))
        return try FerrySimulator.measure(traffic, on: parameters, profile: profile, events: events)
            .goodput(bytesPerUnit: valueLength) / 1_000
    }

    /// Packets in each connection event that the measured throughput implies; `nil` where each write waits for its answer,
    /// which says nothing about that.
    package func packetsPerEvent(_ parameters: LinkParameters) -> Int? {
        guard !isAcknowledged else { return nil }
        // 3 bytes of ATT and 4 of L2CAP go with each value.
        let packets = (valueLength + 7 + parameters.dataLength - 1) / parameters.dataLength
        let values = goodput * parameters.connectionInterval.milliseconds / Double(valueLength * 8)
        return max(1, Int((values * Double(packets)).rounded()))
    }
}
