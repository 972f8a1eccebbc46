import Ferry

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// An address as the system's calls take it.
struct SystemAddress: Sendable {
    private var bytes: [UInt8]
    let family: Int32

    /// The address of a Unix socket.
    ///
    /// - Throws: `invalidConfiguration` when the path is too long, or abstract where there is no such thing.
    init(unixPath path: String) throws(FerryError) {
        var address = sockaddr_un()
        let first = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        let isAbstract = path.utf8.first == UInt8(ascii: "@")
        #if canImport(Darwin)
            guard !isAbstract else {
                throw FerryError(
                    .invalidConfiguration, "'\(path)' is abstract, which only Linux has. Give a path, or ./\(path).")
            }
            address.sun_len = UInt8(MemoryLayout<sockaddr_un>.size)
        #endif
        address.sun_family = sa_family_t(AF_UNIX)
        let name = (isAbstract ? [0] + Array(path.utf8.dropFirst()) : Array(path.utf8))
        let most = MemoryLayout.size(ofValue: address.sun_path) - (isAbstract ? 0 : 1)
        guard name.count <= most else {
            throw FerryError(
                .invalidConfiguration,
                "The path of the Unix socket has \(name.count) bytes; the system takes \(most): '\(path)'. Use a shorter "
                    + "one, relative perhaps.")
        }
        withUnsafeMutableBytes(of: &address) { bytes in
            for (index, byte) in name.enumerated() { bytes[first + index] = byte }
        }
        let count = isAbstract ? first + name.count : MemoryLayout<sockaddr_un>.size
        bytes = withUnsafeBytes(of: &address) { Array($0[..<count]) }
        family = AF_UNIX
    }

    /// The same TCP address with another port: the third and fourth byte, in both families.
    func with(port: UInt16) -> SystemAddress {
        var changed = self
        changed.bytes.replaceSubrange(2..<4, with: [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)])
        return changed
    }

    private init(_ info: addrinfo) {
        family = info.ai_family
        bytes = Array(UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen)))
    }

    /// Looks a host up. It blocks for as long as the system's resolver takes.
    ///
    /// - Parameter isListening: an empty host is every interface then, else this machine.
    static func resolve(_ host: String, _ port: UInt16, isListening: Bool) -> Result<[SystemAddress], ResolvingProblem>
    {
        var hints = addrinfo()
        #if canImport(Glibc)
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
            hints.ai_socktype = SOCK_STREAM
        #endif
        hints.ai_flags = AI_NUMERICSERV | (isListening ? AI_PASSIVE : 0)
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host.isEmpty ? nil : host, "\(port)", &hints, &list)
        guard result == 0 else {
            return .failure(ResolvingProblem(text: String(cString: gai_strerror(result)), mayPass: result == EAI_AGAIN))
        }
        defer { freeaddrinfo(list) }
        var found: [SystemAddress] = []
        var next = list
        while let info = next, found.count < 16 {
            found.append(SystemAddress(info.pointee))
            next = info.pointee.ai_next
        }
        return .success(found)
    }

    struct ResolvingProblem: Error {
        let text: String
        let mayPass: Bool
    }

    // MARK: Calls

    private func with(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) throws(Problem) {
        let result = bytes.withUnsafeBytes { bytes -> Int32 in
            guard let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress else { return -1 }
            return body(address, socklen_t(bytes.count))
        }
        if result != 0 { throw Problem() }
    }

    func bind(_ descriptor: Descriptor) throws(Problem) {
        #if canImport(Darwin)
            try with { Darwin.bind(descriptor.number, $0, $1) }
        #elseif canImport(Musl)
            try with { Musl.bind(descriptor.number, $0, $1) }
        #else
            try with { Glibc.bind(descriptor.number, $0, $1) }
        #endif
    }

    func connect(_ descriptor: Descriptor) throws(Problem) {
        #if canImport(Darwin)
            try with { Darwin.connect(descriptor.number, $0, $1) }
        #elseif canImport(Musl)
            try with { Musl.connect(descriptor.number, $0, $1) }
        #else
            try with { Glibc.connect(descriptor.number, $0, $1) }
        #endif
    }
}

extension Descriptor {
    /// Begins to take connections.
    func listen() throws(Problem) {
        #if canImport(Darwin)
            let result = Darwin.listen(number, 128)
        #elseif canImport(Musl)
            let result = Musl.listen(number, 128)
        #else
            let result = Glibc.listen(number, 128)
        #endif
        guard result == 0 else { throw Problem() }
    }

    /// The next connection that waits.
    func accept() throws(Problem) -> Descriptor {
        #if canImport(Darwin)
            let accepted = Darwin.accept(number, nil, nil)
        #elseif canImport(Musl)
            let accepted = Musl.accept(number, nil, nil)
        #else
            let accepted = Glibc.accept(number, nil, nil)
        #endif
        guard accepted >= 0 else { throw Problem() }
        return Descriptor(owning: accepted, kind, poller)
    }

    /// Host and port of one end of a TCP connection or listener, in figures.
    func name(ofPeer isPeer: Bool) -> (host: String, port: UInt16)? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let result = isPeer ? getpeername(number, address, &size) : getsockname(number, address, &size)
                guard result == 0 else { return nil }
                var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
                var service = [CChar](repeating: 0, count: Int(NI_MAXSERV))
                guard
                    getnameinfo(
                        address, size, &host, socklen_t(host.count), &service, socklen_t(service.count),
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0
                else { return nil }
                return (Self.text(host), UInt16(Self.text(service)) ?? 0)
            }
        }
    }

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
