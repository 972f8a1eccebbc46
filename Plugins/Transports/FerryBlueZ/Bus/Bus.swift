#if BlueZ
    import CSystemd
    import Glibc

    /// A connection to a message bus, by sd-bus (sd-bus(3)). Belongs to its ``BusThread``: every call is made there.
    final class Bus {
        /// The system bus, or where `DBUS_SYSTEM_BUS_ADDRESS` says it is (D-Bus Specification, "Well-known Message Bus
        /// Instances").
        static var systemAddress: String {
            getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? "unix:path=/run/dbus/system_bus_socket"
        }

        /// For messages that only ``send(_:_:)`` makes.
        let raw: OpaquePointer
        private let thread: BusThread
        private var pending: [UInt: PendingCall] = [:]
        private var nextCall: UInt = 1
        private var watched: (descriptor: Int32, events: Int32)?
        private(set) var isClosed = false
        /// Whether there may be something to process: something came, was sent, or is due by time.
        private var isDue = true
        private var deadline: UInt64?

        /// Told of signals and of calls to this side's objects; returns whether the message was for it.
        var onMessage: (BusMessage) -> Bool = { _ in false }
        /// Told when the bus has gone away.
        var onClose: () -> Void = {}

        /// A call that waits for its reply.
        final class PendingCall {
            unowned let bus: Bus
            let id: UInt
            let reply: (Result<BusMessage, BusError>) -> Void
            var slot: OpaquePointer?

            init(_ bus: Bus, _ id: UInt, _ reply: @escaping (Result<BusMessage, BusError>) -> Void) {
                self.bus = bus
                self.id = id
                self.reply = reply
            }
        }

        /// Connects. What the other side says about it comes with the first call's reply.
        init(_ address: String, on thread: BusThread) throws(BusError) {
            var bus: OpaquePointer?
            var result = sd_bus_new(&bus)
            guard result >= 0, let bus else { throw BusError("No bus", result) }
            raw = bus
            self.thread = thread
            result = sd_bus_set_address(bus, address)
            if result >= 0 { result = sd_bus_set_bus_client(bus, 1) }
            if result >= 0 { result = sd_bus_start(bus) }
            guard result >= 0 else {
                throw BusError("The system bus cannot be reached at \(address)", result)
            }
            let filter: sd_bus_message_handler_t = { message, context, _ in
                guard let message, let context else { return 0 }
                let bus = Unmanaged<Bus>.fromOpaque(context).takeUnretainedValue()
                return bus.onMessage(BusMessage(message)) ? 1 : 0
            }
            sd_bus_add_filter(bus, nil, filter, Unmanaged.passUnretained(self).toOpaque())
        }

        deinit {
            close()
            sd_bus_unref(raw)
        }

        /// Handles received messages and sends queued ones. Returns the latest time for the next call, in microseconds
        /// of `CLOCK_MONOTONIC`.
        func process() -> UInt64? {
            guard !isClosed else { return nil }
            // Most waits are for values, which the bus has no part in.
            guard isDue || deadline.map({ BusThread.now >= $0 }) == true else { return deadline }
            isDue = false
            var result: Int32
            repeat { result = sd_bus_process(raw, nil) } while result > 0 && !isClosed
            guard !isClosed else { return nil }
            guard result >= 0, sd_bus_is_open(raw) > 0 else {
                close()
                onClose()
                return nil
            }
            let events = sd_bus_get_events(raw)
            let descriptor = sd_bus_get_fd(raw)
            if watched?.events != events || watched?.descriptor != descriptor {
                watched = (descriptor, events)
                thread.watch(descriptor, events) { [weak self] _ in self?.isDue = true }
            }
            var timeout: UInt64 = .max
            deadline = sd_bus_get_timeout(raw, &timeout) >= 0 && timeout != .max ? timeout : nil
            return deadline
        }

        /// Ends the connection; calls that wait fail.
        func close() {
            guard !isClosed else { return }
            isClosed = true
            if let watched { thread.unwatch(watched.descriptor) }
            let waiting = pending.values
            pending = [:]
            for call in waiting {
                sd_bus_slot_unref(call.slot)
                call.reply(.failure(.closed))
            }
            sd_bus_close(raw)
        }

        // MARK: Calls

        /// Calls a method; `reply` comes later, never from within, at the latest after `timeout`.
        func call(
            _ destination: String, _ path: String, _ interface: String, _ member: String, _ arguments: [BusValue],
            timeout: Duration, reply: @escaping (Result<BusMessage, BusError>) -> Void
        ) {
            do throws(BusError) {
                guard !isClosed else { throw .closed }
                var message: OpaquePointer?
                let result = sd_bus_message_new_method_call(raw, &message, destination, path, interface, member)
                guard result >= 0, let message else {
                    throw BusError("\(interface).\(member) cannot be called", result)
                }
                let call = BusMessage(owning: message)
                try call.append(arguments)
                try send(call, timeout, reply)
            } catch {
                thread.schedule(after: .zero) { reply(.failure(error)) }
            }
        }

        private func send(
            _ message: BusMessage, _ timeout: Duration, _ reply: @escaping (Result<BusMessage, BusError>) -> Void
        ) throws(BusError) {
            isDue = true
            let call = PendingCall(self, nextCall, reply)
            nextCall += 1
            let handler: sd_bus_message_handler_t = { message, context, _ in
                guard let message, let context else { return 0 }
                let call = Unmanaged<PendingCall>.fromOpaque(context).takeUnretainedValue()
                call.bus.finish(call, BusMessage(message))
                return 1
            }
            let microseconds = UInt64(max(1, timeout / .microseconds(1)))
            let result = message.withPointer { pointer in
                sd_bus_call_async(
                    raw, &call.slot, pointer, handler, Unmanaged.passUnretained(call).toOpaque(), microseconds)
            }
            guard result >= 0 else { throw BusError("The bus takes no more calls", result) }
            pending[call.id] = call
        }

        private func finish(_ call: PendingCall, _ message: BusMessage) {
            guard pending.removeValue(forKey: call.id) != nil else { return }
            sd_bus_slot_unref(call.slot)
            if let error = message.error { call.reply(.failure(error)) } else { call.reply(.success(message)) }
        }

        // MARK: Answers

        /// Answers a call.
        func reply(to call: BusMessage, _ values: [BusValue]) {
            guard !isClosed, call.expectsReply else { return }
            do throws(BusError) {
                try send(values) { reply in
                    call.withPointer { sd_bus_message_new_method_return($0, &reply) }
                }
            } catch {
                fail(call, BusError(name: "org.freedesktop.DBus.Error.Failed", message: "\(error)"))
            }
        }

        /// Answers a call with an error.
        func fail(_ call: BusMessage, _ error: BusError) {
            guard !isClosed, call.expectsReply else { return }
            error.name.withCString { name in
                error.message.withCString { text in
                    var raw = sd_bus_error(name: name, message: text, _need_free: 0)
                    try? send([]) { reply in
                        call.withPointer { sd_bus_message_new_method_error($0, &reply, &raw) }
                    }
                }
            }
        }

        /// Makes a message, fills it and sends it.
        func send(
            _ values: [BusValue], _ make: (inout OpaquePointer?) -> Int32
        ) throws(BusError) {
            isDue = true
            var made: OpaquePointer?
            let result = make(&made)
            guard result >= 0, let made else { throw BusError("No message can be made", result) }
            let message = BusMessage(owning: made)
            try message.append(values)
            _ = message.withPointer { sd_bus_send(raw, $0, nil) }
        }
    }
#endif
