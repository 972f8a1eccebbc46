import Foundation

/// An address of this machine that no other process has, whatever ports are in use: no connection comes from it, and no other
/// process has its number.
package enum OwnAddress {
    package static let text: String = {
        let number = ProcessInfo.processInfo.processIdentifier
        return "127.\(64 + number >> 16 & 0x7F).\(number >> 8 & 0xFF).\(number & 0xFF)"
    }()
}
