#if Records
    import Ferry
    import FerryRecords
    import Foundation

    /// The notices that a store writes while a program has it open, each once: a loss must not wait for an operator who asks.
    struct StoreNotices: Sendable {
        private let store: RecordStore
        /// Until the first look: when the store was about to be opened. Older notices have been written.
        private var began: Date?
        /// How many the store has written, ever.
        private(set) var count: Int64 = 0

        /// - Parameter began: before the store was opened, because opening it finds the losses.
        init(_ store: RecordStore, since began: Date) {
            self.store = store
            // Notices have milliseconds.
            self.began = began - 0.001
        }

        /// Those that have not been given yet.
        ///
        /// - Throws: `closed`, `storeFailed`.
        mutating func next() async throws(FerryError) -> [RecordStore.Notice] {
            let notices = try await store.notices(after: count)
            count = notices.last?.number ?? count
            defer { began = nil }
            guard let began else { return notices }
            return notices.filter { $0.date >= began }
        }

        /// Tells them every second, until the task is cancelled; the rest is for the caller.
        mutating func tell(_ tell: (RecordStore.Notice) -> Void) async {
            while !Task.isCancelled, let notices = try? await next() {
                notices.forEach(tell)
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    extension RecordStore {
        /// Closes it at any end of `body`.
        func closing<Value>(_ body: (RecordStore) async throws -> Value) async throws -> Value {
            let result: Result<Value, any Error>
            do { result = .success(try await body(self)) } catch { result = .failure(error) }
            await close()
            return try result.get()
        }

        /// Opens a store for a program, tells what it notices on standard error, and closes it at any end.
        static func use<Value>(
            _ path: String, _ body: (RecordStore) async throws -> Value
        ) async throws -> Value {
            let began = Date()
            return try await RecordStore.open(path).closing { store in
                let notices = StoreNotices(store, since: began)
                let result: Result<Value, any Error> = await withTaskGroup(of: StoreNotices.self) { group in
                    group.addTask {
                        var notices = notices
                        await notices.tell { note($0.text) }
                        return notices
                    }
                    let result: Result<Value, any Error>
                    do { result = .success(try await body(store)) } catch { result = .failure(error) }
                    group.cancelAll()
                    var rest = await group.next() ?? notices
                    for notice in (try? await rest.next()) ?? [] { note(notice.text) }
                    return result
                }
                return try result.get()
            }
        }
    }
#endif
