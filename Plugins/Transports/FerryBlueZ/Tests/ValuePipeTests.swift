#if BlueZ
    import TestSupport
    import Testing

    @testable import FerryBlueZ

    /// The socket through which values go to bluetoothd.
    @Suite(.tags(.adapter, .gatt)) struct ValuePipeTests {
        /// ATT_HANDLE_VALUE_NTF has an opcode and a handle before its value, ATT_MULTIPLE_HANDLE_VALUE_NTF a length too.
        @Test(arguments: [(23, 18), (185, 180), (516, 511), (517, 512)])
        func aValueFitsInAPDUForSeveralHandles(_ mtu: Int, _ bytes: Int) {
            #expect(ValuePipe.limit(ofMTU: mtu) == bytes)
        }
    }
#endif
