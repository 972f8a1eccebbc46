#if BlueZ
    extension BlueZEngine {
        func answerAgent(_ call: BusMessage, _ arguments: [BusValue]) -> Bool { false }
    }

    struct PairingAgentExport {}
#endif
