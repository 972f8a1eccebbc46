#if BlueZ
    import FerryBluetooth

    extension BusError {
        var isUnknownObject: Bool {
            name.hasSuffix(".UnknownObject") || name.hasSuffix(".UnknownMethod") || name.hasSuffix(".DoesNotExist")
        }
        var isInProgress: Bool { name == "org.bluez.Error.InProgress" }
        var isTimeout: Bool { name.hasSuffix(".Timeout") || name.hasSuffix(".NoReply") || name == "errno.110" }

        var isAccessDenied: Bool { name == "org.freedesktop.DBus.Error.AccessDenied" }
        static let accessAdvice =
            "The system bus does not let this user talk to bluetoothd: add it to the group bluetooth (adduser USER "
            + "bluetooth) and log in again, or see /etc/dbus-1/system.d/bluetooth.conf."

        /// In the adapter seam's words, where the meaning does not depend on the request.
        func bluetooth(_ what: String) -> BluetoothError {
            let code: BluetoothError.Code
            var advice = ""
            switch name {
            case "org.bluez.Error.NotReady":
                code = .notPoweredOn
                advice = " Switch the adapter on: bluetoothctl power on"
            case "org.bluez.Error.NotSupported": code = .notSupported
            case "org.bluez.Error.InvalidArguments", "org.freedesktop.DBus.Error.InvalidArgs": code = .invalidArgument
            case "org.bluez.Error.NotConnected": code = .notConnected
            case "org.freedesktop.DBus.Error.AccessDenied":
                return BluetoothError(.notSupported, "\(what). \(Self.accessAdvice)")
            case _ where isTimeout: code = .timedOut
            case _ where isUnknownObject: code = .unknownAttribute
            default: code = .connectionFailed
            }
            return BluetoothError(code, "\(what): \(self).\(advice)")
        }

        /// A GATT request's failure: the peer's ATT error where BlueZ says which.
        func attribute(_ what: String, isWrite: Bool) -> BluetoothError {
            func att(_ error: ATTError) -> BluetoothError { BluetoothError(.att(error), "\(what): \(self).") }
            switch name {
            case "org.bluez.Error.NotPermitted":
                // "Not paired" stands for all errors that pairing would mend.
                if message == "Not paired" { return att(.insufficientAuthentication) }
                return att(isWrite ? .writeNotPermitted : .readNotPermitted)
            case "org.bluez.Error.NotAuthorized": return att(.insufficientAuthorization)
            case "org.bluez.Error.NotSupported": return att(.requestNotSupported)
            case "org.bluez.Error.InvalidOffset": return att(.invalidOffset)
            case "org.bluez.Error.InvalidValueLength": return att(.invalidAttributeValueLength)
            case "org.bluez.Error.InvalidArguments":
                return att(message.contains("offset") ? .invalidOffset : .invalidAttributeValueLength)
            case "org.bluez.Error.Failed":
                // "Operation failed with ATT error: 0x9a (Unknown)"
                guard let place = message.firstRange(of: "0x") else { break }
                let digits = message[place.upperBound...].prefix(while: \.isHexDigit)
                if let code = UInt8(digits, radix: 16) { return att(ATTError(rawValue: code)) }
            default: break
            }
            let plain = bluetooth(what)
            return plain.code == .connectionFailed ? BluetoothError(.notConnected, plain.message) : plain
        }
    }

    extension ATTError {
        /// The D-Bus error that makes bluetoothd answer with this one. Where it knows none, its 5.66 sends 0x0E.
        var bluez: BusError {
            let name =
                switch self {
                case .invalidOffset: "InvalidOffset"
                case .invalidAttributeValueLength: "InvalidValueLength"
                case .readNotPermitted, .writeNotPermitted: "NotPermitted"
                case .insufficientAuthorization: "NotAuthorized"
                case .requestNotSupported: "NotSupported"
                case .procedureAlreadyInProgress: "InProgress"
                default: "Failed"
                }
            return BusError(
                name: "org.bluez.Error.\(name)", message: "0x" + String(rawValue, radix: 16))
        }
    }
#endif
