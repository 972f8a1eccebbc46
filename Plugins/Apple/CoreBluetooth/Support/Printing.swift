import Ferry
import Foundation

extension NSObject {
    /// An object in the form in which Apple's print: class, address and contents.
    func printed(_ contents: String, separator: String = ", ") -> String {
        let place = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
        return "<\(type(of: self)): 0x\(String(place, radix: 16))\(separator)\(contents)>"
    }

    /// Bytes as Apple's Foundation prints them: those of long ones at both ends.
    func printed(_ data: Data?) -> String {
        guard let data else { return "(null)" }
        guard data.count > 24 else { return "{length = \(data.count), bytes = 0x\(data.hexadecimal())}" }
        // Sixteen bytes in groups of four, and the last eight.
        let head = stride(from: 0, to: 16, by: 4).map { data.dropFirst($0).prefix(4).hexadecimal() }.joined(
            separator: " ")
        let tail = [data.suffix(8).prefix(4), data.suffix(4)].map { $0.hexadecimal() }.joined(separator: " ")
        return "{length = \(data.count), bytes = 0x\(head) ... \(tail) }"
    }
}
