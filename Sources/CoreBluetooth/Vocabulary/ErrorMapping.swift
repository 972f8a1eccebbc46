import FerryBluetooth
import Foundation

extension BluetoothError {
    /// The error as a delegate receives it.
    var asCoreBluetooth: any Error {
        if let error = code.attError {
            return CBATTError(
                _nsError: NSError(
                    domain: CBATTErrorDomain, code: Int(error.rawValue),
                    userInfo: [NSLocalizedDescriptionKey: error.explanation]))
        }
        return CBError(coreBluetoothCode, message)
    }

    private var coreBluetoothCode: CBError.Code {
        switch code {
        case .unknownPeer: .unknownDevice
        case .notConnected, .notPoweredOn, .disconnectedLocally: .notConnected
        case .connectionFailed, .channelRefused: .connectionFailed
        case .unknownAttribute: .invalidHandle
        case .invalidArgument, .valueTooLong: .invalidParameters
        case .notSupported: .operationNotSupported
        case .advertisingFailed: .outOfSpace
        case .timedOut, .connectionTimeout: .connectionTimeout
        case .cancelled, .roleClosed: .operationCancelled
        case .disconnectedByPeer: .peripheralDisconnected
        default: .unknown
        }
    }
}

extension CBError {
    init(_ code: Code, _ message: String) {
        self.init(code, userInfo: [NSLocalizedDescriptionKey: message])
    }
}

extension CBATTError {
    init(_ code: Code, _ message: String) {
        self.init(code, userInfo: [NSLocalizedDescriptionKey: message])
    }
}
