// swift-format-ignore-file
// In the style of the field's tutorials, Swift 5: nothing here knows that it runs on Linux.
import CoreBluetooth
import Foundation

public struct TransferService {
    public static let serviceUUID = CBUUID(string: "E20A39F4-73F5-4BC4-A12F-17D1AD07A961")
    public static let characteristicUUID = CBUUID(string: "08590F7E-DB05-467E-8757-72F6FAEB13D4")
}

/// The sender: walks a buffer with sendDataIndex, then sends "EOM".
public class TransferPeripheral: NSObject {
    var peripheralManager: CBPeripheralManager!

    var transferCharacteristic: CBMutableCharacteristic?
    var connectedCentral: CBCentral?
    var dataToSend = Data()
    var sendDataIndex: Int = 0
    static var sendingEOM = false
    let notifyMTU: Int

    public let text: String
    public var timesNotReady = 0
    public var onDone: (() -> Void)?

    public init(text: String, notifyMTU: Int = 512) {
        self.text = text
        self.notifyMTU = notifyMTU
        super.init()
        peripheralManager = CBPeripheralManager(delegate: self, queue: nil, options: [CBPeripheralManagerOptionShowPowerAlertKey: true])
    }

    public func stop() {
        peripheralManager.stopAdvertising()
    }

    private func sendData() {
        guard let transferCharacteristic = transferCharacteristic else {
            return
        }

        if TransferPeripheral.sendingEOM {
            let didSend = peripheralManager.updateValue("EOM".data(using: .utf8)!, for: transferCharacteristic, onSubscribedCentrals: nil)
            if didSend {
                TransferPeripheral.sendingEOM = false
                onDone?()
            }
            return
        }

        if sendDataIndex >= dataToSend.count {
            return
        }

        var didSend = true
        while didSend {
            var amountToSend = dataToSend.count - sendDataIndex
            if let mtu = connectedCentral?.maximumUpdateValueLength {
                amountToSend = min(amountToSend, mtu)
            }
            amountToSend = min(amountToSend, notifyMTU)

            let chunk = dataToSend.subdata(in: sendDataIndex..<(sendDataIndex + amountToSend))
            didSend = peripheralManager.updateValue(chunk, for: transferCharacteristic, onSubscribedCentrals: nil)
            if !didSend {
                timesNotReady += 1
                return
            }

            sendDataIndex += amountToSend
            if sendDataIndex >= dataToSend.count {
                TransferPeripheral.sendingEOM = true
                let eomSent = peripheralManager.updateValue("EOM".data(using: .utf8)!, for: transferCharacteristic, onSubscribedCentrals: nil)
                if eomSent {
                    TransferPeripheral.sendingEOM = false
                    onDone?()
                }
                return
            }
        }
    }

    private func setupPeripheral() {
        let transferCharacteristic = CBMutableCharacteristic(type: TransferService.characteristicUUID,
                                                             properties: [.notify, .writeWithoutResponse],
                                                             value: nil,
                                                             permissions: [.readable, .writeable])
        let transferService = CBMutableService(type: TransferService.serviceUUID, primary: true)
        transferService.characteristics = [transferCharacteristic]
        peripheralManager.add(transferService)
        self.transferCharacteristic = transferCharacteristic
    }
}

extension TransferPeripheral: CBPeripheralManagerDelegate {
    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        switch peripheral.state {
        case .poweredOn:
            setupPeripheral()
            peripheralManager.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [TransferService.serviceUUID]])
        case .poweredOff, .resetting, .unauthorized, .unsupported, .unknown:
            return
        @unknown default:
            return
        }
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic) {
        dataToSend = text.data(using: .utf8)!
        sendDataIndex = 0
        connectedCentral = central
        sendData()
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic) {
        connectedCentral = nil
    }

    public func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
        sendData()
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        for aRequest in requests {
            guard let requestValue = aRequest.value, let stringFromData = String(data: requestValue, encoding: .utf8) else {
                continue
            }
            print("Received write request of \(stringFromData)")
        }
    }
}
