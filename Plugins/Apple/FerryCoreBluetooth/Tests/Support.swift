import CoreBluetooth

/// Each quirk by itself, and all at once.
let everyQuirk: [CBQuirks] = (0..<13).map { CBQuirks(rawValue: 1 << $0) } + [CBQuirks(rawValue: 0x1FFF)]
