struct CompressionEnvelope {
    let compression: any Compression; let limits: Limits
    func wrap(_ payload: [UInt8]) throws(FerryError) -> [UInt8] { payload }
    func unwrap(_ payload: [UInt8]) throws(FerryError) -> [UInt8] { payload }
}
