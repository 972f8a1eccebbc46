import FerryBluetooth
import Foundation

extension BluetoothError {
    /// The error as a delegate receives it.
    var asCoreBluetooth: any Error {
        if let error = code.attError {
            let code = CBATTError.Code(rawValue: Int(error.rawValue)) ?? .unlikelyError
            return CBATTError(code, error.explanation)
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

// Programs see Apple's words. Ferry's own reason is beside it.
extension CBError {
    init(_ code: Code, _ reason: String) {
        self.init(
            code, userInfo: [NSLocalizedDescriptionKey: code.text, PrintedError.reasonKey: reason])
    }
}

extension CBATTError {
    init(_ code: Code, _ reason: String) {
        self.init(
            code, userInfo: [NSLocalizedDescriptionKey: code.text, PrintedError.reasonKey: reason])
    }
}
