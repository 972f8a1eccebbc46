import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

private final class Work: Sendable {
    let body: @Sendable () throws -> Void
    let error = Mutex<(any Error)?>(nil)

    init(_ body: @escaping @Sendable () throws -> Void) { self.body = body }
}

/// Runs `body` on a new thread with `stackSize` bytes of stack, and waits for it.
package func onThread(stackSize: Int, _ body: @escaping @Sendable () throws -> Void) throws {
    let work = Work(body)
    var attributes = pthread_attr_t()
    guard pthread_attr_init(&attributes) == 0, pthread_attr_setstacksize(&attributes, stackSize) == 0 else {
        throw SmallStackError()
    }
    defer { pthread_attr_destroy(&attributes) }
    #if canImport(Darwin)
        var thread: pthread_t?
    #else
        var thread = pthread_t()
    #endif
    let status = pthread_create(
        &thread, &attributes,
        { argument in
            #if canImport(Darwin)
                let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
            #else
                guard let argument else { return nil }
                let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
            #endif
            do { try work.body() } catch { work.error.withLock { $0 = error } }
            return nil
        }, Unmanaged.passRetained(work).toOpaque())
    guard status == 0 else { throw SmallStackError() }
    #if canImport(Darwin)
        if let thread { pthread_join(thread, nil) }
    #else
        pthread_join(thread, nil)
    #endif
    if let error = work.error.withLock({ $0 }) { throw error }
}

struct SmallStackError: Error {}
