import Ferry
import FerryBluetooth
import FerrySimulator

/// Parameters of a link; intervals in milliseconds.
func link(
    interval: Double = 4_000, phy: PHY = .le1M, dataLength: Int = 27, isEncrypted: Bool = false, attMTU: Int = 23,
    loss: PacketLoss = .none
) -> LinkParameters {
    var parameters = LinkParameters()
    parameters.connectionInterval = .microseconds(Int(interval * 1_000))
    parameters.supervisionTimeout = .seconds(32)
    parameters.phy = phy
    parameters.dataLength = dataLength
    parameters.isEncrypted = isEncrypted
    parameters.attMTU = attMTU
    parameters.loss = loss
    return parameters
}

/// Goodput in kbps (1000 bits a second).
func kbps(
    _ traffic: Traffic, _ bytes: Int, _ parameters: LinkParameters, _ profile: ControllerProfile = .ideal,
    events: Int = 50
) throws -> Double {
    try measure(traffic, on: parameters, profile: profile, events: events).goodput(bytesPerUnit: bytes) / 1_000
}
