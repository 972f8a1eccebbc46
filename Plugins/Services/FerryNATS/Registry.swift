#if NATS
    import Synchronization

    /// Where libnats' callbacks find whom they are for. They get a number and no pointer, so that one that comes late, on a thread
    /// of the library's, finds no client, and not freed memory.
    enum Registry {
        private struct State {
            var objects: [UInt: any AnyObject & Sendable] = [:]
            var last: UInt = 0
        }

        private static let state = Mutex(State())

        static func add(_ object: any AnyObject & Sendable) -> UnsafeMutableRawPointer? {
            let number = state.withLock { state in
                state.last += 1
                state.objects[state.last] = object
                return state.last
            }
            return UnsafeMutableRawPointer(bitPattern: number)
        }

        static func find<Object>(_ closure: UnsafeMutableRawPointer?, _ type: Object.Type = Object.self) -> Object? {
            state.withLock { $0.objects[UInt(bitPattern: closure)] } as? Object
        }

        static func remove(_ closure: UnsafeMutableRawPointer?) {
            _ = state.withLock { $0.objects.removeValue(forKey: UInt(bitPattern: closure)) }
        }
    }
#endif
