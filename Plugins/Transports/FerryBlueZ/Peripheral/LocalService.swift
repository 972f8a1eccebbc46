#if BlueZ
    import FerryBluetooth
    import Synchronization

    /// Who opened a peripheral role.
    final class PeripheralOwner: Sendable {
        struct State {
            var characteristics: [AttributeID: LocalCharacteristic] = [:]
            /// The sockets of the L2CAP channels that are offered.
            var listeners: [PSM: FileDescriptor] = [:]
        }

        let id: UInt64
        let events: any PeripheralRoleEvents
        let state = Mutex(State())

        init(id: UInt64, _ events: any PeripheralRoleEvents) {
            self.id = id
            self.events = events
        }
    }

    /// A published service, with the names of its objects on the bus.
    struct LocalService {
        let id: AttributeID
        let owner: PeripheralOwner
        let definition: ServiceDefinition
        let characteristics: [LocalCharacteristic]
        var path = ""
    }

    /// A published characteristic, and who is subscribed to it.
    final class LocalCharacteristic: Sendable {
        struct Subscriber {
            let central: ConnectedCentral
            let device: String
            let pipe: ValuePipe
            let subscription: Subscription
        }

        let id: AttributeID
        let definition: CharacteristicDefinition
        let owner: PeripheralOwner
        let subscriber = Mutex<Subscriber?>(nil)

        init(id: AttributeID, _ definition: CharacteristicDefinition, owner: PeripheralOwner) {
            self.id = id
            self.definition = definition
            self.owner = owner
        }

        /// How bluetoothd lets centrals subscribe: it does not tell which way they have asked for.
        var subscription: Subscription { definition.properties.offers(.notify) ? .notify : .indicate }
        var canRead: Bool {
            definition.properties.contains(.read)
                && !definition.permissions.isDisjoint(with: [.readable, .readEncryptionRequired])
        }
        /// bluetoothd 5.66 answers all writes to what takes writes without response itself, and does not tell the two apart.
        var hasUnansweredWrites: Bool { definition.properties.contains(.writeWithoutResponse) }
        var canWrite: Bool { !definition.permissions.isDisjoint(with: [.writeable, .writeEncryptionRequired]) }

        /// What `org.bluez.GattCharacteristic1` calls flags: the properties, and permissions where they say more.
        var flags: [String] {
            let properties = definition.properties
            let permissions = definition.permissions
            // What bluetoothd calls the levels 2, 3 and 4 of security mode 1.
            let secure =
                permissions.contains(.secureConnectionsRequired)
                ? "secure" : permissions.contains(.authenticationRequired) ? "encrypt-authenticated" : "encrypt"
            var flags: [String] = []
            if properties.contains(.broadcast) { flags.append("broadcast") }
            if properties.contains(.read) {
                flags.append(permissions.contains(.readEncryptionRequired) ? "\(secure)-read" : "read")
            }
            if properties.contains(.writeWithoutResponse) { flags.append("write-without-response") }
            if properties.contains(.write) { flags.append("write") }
            if permissions.contains(.writeEncryptionRequired) { flags.append("\(secure)-write") }
            if properties.contains(.notifyEncryptionRequired) {
                flags.append("\(secure)-notify")
            } else if properties.contains(.notify) {
                flags.append("notify")
            }
            if properties.contains(.indicateEncryptionRequired) {
                flags.append("\(secure)-indicate")
            } else if properties.contains(.indicate) {
                flags.append("indicate")
            }
            if properties.contains(.authenticatedSignedWrites) { flags.append("authenticated-signed-writes") }
            return flags
        }
    }

    /// Services that were registered together, because they include one another.
    struct Application {
        let path: String
        var services: [LocalService]
        var isRegistered = false
    }

    /// What an object of this side is.
    enum Export {
        case application
        case service(LocalService)
        case characteristic(LocalCharacteristic, service: String)
        case descriptor(DescriptorDefinition, characteristic: String)
        case advertisement(Advertisement, PeripheralOwner)
        case agent
    }

    /// A request that waits for its owner's answer.
    struct PendingRequest {
        let call: BusMessage
        let isRead: Bool
    }
#endif
