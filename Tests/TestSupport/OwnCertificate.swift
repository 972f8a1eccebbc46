package import Foundation

/// A certificate that is its own authority, for servers that tests start.
package enum OwnCertificate {
    package struct Failure: Error { let text: String }

    /// Makes certificate.pem and key.pem in a folder by openssl(1), for 127.0.0.1, `localhost` and ``OwnAddress``.
    package static func make(in folder: URL) async throws {
        let openssl = try ChildProcess(
            "/usr/bin/env",
            [
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                "2", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=IP:127.0.0.1,IP:\(OwnAddress.text),DNS:localhost", "-keyout",
                folder.appending(path: "key.pem").path(), "-out", folder.appending(path: "certificate.pem").path(),
            ], errors: .none)
        guard await openssl.ended() == .exited(0) else { throw Failure(text: "openssl made no certificate") }
    }
}
