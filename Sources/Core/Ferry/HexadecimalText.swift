extension Sequence<UInt8> {
    /// Two hexadecimal digits a byte.
    package func hexadecimal(separator: String = "", uppercase: Bool = false) -> String {
        map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: uppercase) }.joined(separator: separator)
    }
}
