import Glibc

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// Has libFuzzer call `test` with one input after the other, as the program's arguments say.
public func runFuzzer(_ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt) {
    var count = CommandLine.argc
    var arguments = CommandLine.unsafeArgv
    _ = runDriver(&count, &arguments, test)
}

/// The format of all inputs, in place of what their first byte says, so that each format can have as many: FUZZ_FORMAT in the environment,
/// from 0 to 255; `nil` without it.
public let chosenFormat: UInt8? = getenv("FUZZ_FORMAT").flatMap { UInt8(String(cString: $0)) }
