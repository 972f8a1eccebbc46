#if Records
    import Ferry
    import Foundation
    import Synchronization

    /// A link over a socket that keeps the borders of chunks (SOCK_SEQPACKET), between processes or within one.
    final class PacketLink: Link {
        private struct State {
            var receiver: (any LinkReceiver)?
            var isActivated = false
            var isReceiving = true
            var owesReady = false
            var reason: FerryError?
            /// The files are closed, and their numbers may be others' by now.
            var isGone = false
        }

        let peer: PeerIdentity
        let maximumChunkSize: Int
        private let descriptor: Int32
        /// Wakes the thread.
        private let bell: (Int32, Int32)
        private let state = Mutex(State())

        init(_ descriptor: Int32, peer: PeerIdentity, maximumChunkSize: Int = 244) {
            self.descriptor = descriptor
            self.peer = peer
            self.maximumChunkSize = maximumChunkSize
            var pipe: [Int32] = [-1, -1]
            _ = Foundation.pipe(&pipe)
            bell = (pipe[0], pipe[1])
            for descriptor in [descriptor, pipe[0], pipe[1]] {
                _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
            }
        }

        /// Two ends in one process.
        static func pair(
            maximumChunkSize: Int = 244,
            near: PeerIdentity = PeerIdentity("near", certainty: .address),
            far: PeerIdentity = PeerIdentity("far", certainty: .address)
        ) -> (PacketLink, PacketLink) {
            var ends: [Int32] = [-1, -1]
            guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0 else { fatalError("no sockets") }
            return (
                PacketLink(ends[0], peer: far, maximumChunkSize: maximumChunkSize),
                PacketLink(ends[1], peer: near, maximumChunkSize: maximumChunkSize)
            )
        }

        func activate(_ receiver: any LinkReceiver) {
            let reason = state.withLock { state in
                state.isActivated = true
                if state.reason == nil { state.receiver = receiver }
                return state.reason
            }
            if let reason { return receiver.linkDidClose(reason) }
            Thread.detachNewThread { self.serve() }
        }

        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
            let answer = state.withLock { state -> Result<Bool, FerryError> in
                if let reason = state.reason { return .failure(reason) }
                let count = chunk.withUnsafeBytes {
                    Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if count == chunk.byteCount { return .success(true) }
                if errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS {
                    state.owesReady = true
                    return .success(false)
                }
                return .failure(FerryError(.disconnected, "The other side is gone."))
            }
            if case .success(false) = answer { ring() }
            return try answer.get()
        }

        func setReceiving(_ isReceiving: Bool) {
            state.withLock { $0.isReceiving = isReceiving }
            ring()
        }

        func close() {
            end(FerryError(.closed, "This side closed the link."))
            // Without a thread nobody else would close the files.
            let isUnused = state.withLock { state in
                defer { if !state.isActivated { state.isGone = true } }
                return !state.isActivated && !state.isGone
            }
            if isUnused { closeFiles() } else { ring() }
        }

        private func closeFiles() {
            for file in [descriptor, bell.0, bell.1] { Foundation.close(file) }
        }

        private func ring() {
            state.withLock { state in
                if !state.isGone { _ = write(bell.1, "!", 1) }
            }
        }

        private func end(_ reason: FerryError) {
            let receiver = state.withLock { state -> (any LinkReceiver)? in
                guard state.reason == nil else { return nil }
                state.reason = reason
                _ = shutdown(descriptor, Int32(SHUT_RDWR))
                defer { state.receiver = nil }
                return state.receiver
            }
            receiver?.linkDidClose(reason)
        }

        private func serve() {
            var bytes = [UInt8](repeating: 0, count: 65_536)
            while true {
                let (isOver, isReceiving, owesReady) = state.withLock {
                    ($0.reason != nil, $0.isReceiving, $0.owesReady)
                }
                guard !isOver else { break }
                let events = (isReceiving ? POLLIN : 0) | (owesReady ? POLLOUT : 0)
                var polled = [
                    pollfd(fd: descriptor, events: Int16(events), revents: 0),
                    pollfd(fd: bell.0, events: Int16(POLLIN), revents: 0),
                ]
                _ = poll(&polled, 2, -1)
                if polled[1].revents != 0 { _ = read(bell.0, &bytes, bytes.count) }
                if polled[0].revents & Int16(POLLOUT) != 0 {
                    let receiver = state.withLock { state in
                        state.owesReady = false
                        return state.receiver
                    }
                    receiver?.linkIsReady()
                }
                if polled[0].revents & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
                    let count = recv(descriptor, &bytes, bytes.count, 0)
                    if count > 0 {
                        let receiver = state.withLock { $0.receiver }
                        receiver?.linkDidReceive(bytes.span.bytes.extracting(first: count))
                    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
                        end(FerryError(.disconnected, "The other side closed the link."))
                    }
                }
            }
            state.withLock { state in
                state.isGone = true
                closeFiles()
            }
        }
    }
#endif
