#if BlueZ
    /// What `org.freedesktop.DBus.ObjectManager` and `Properties` tell of a service's objects, kept up to date.
    struct ObjectTree: Sendable {
        typealias Properties = [String: BusValue]

        private var objects: [String: [String: Properties]] = [:]

        subscript(path: String, interface: String) -> Properties? { objects[path]?[interface] }

        func contains(_ path: String) -> Bool { objects[path] != nil }

        /// The objects with an interface at or below a path, in the order of their names.
        func paths(below path: String = "/", with interface: String) -> [String] {
            let prefix = path == "/" ? "/" : path + "/"
            return objects.filter { $0.value[interface] != nil && ($0.key.hasPrefix(prefix) || $0.key == path) }
                .map(\.key).sorted()
        }

        /// Takes the answer of `GetManagedObjects`.
        mutating func replace(_ managed: BusValue) {
            objects = [:]
            for entry in managed.entries { if let path = entry.key.text { add(path, entry.value) } }
        }

        /// Takes `InterfacesAdded`.
        mutating func add(_ path: String, _ interfaces: BusValue) {
            for entry in interfaces.entries {
                if let name = entry.key.text { objects[path, default: [:]][name] = entry.value.properties }
            }
        }

        /// Takes `InterfacesRemoved`.
        mutating func remove(_ path: String, _ interfaces: [String]) {
            for name in interfaces { objects[path]?[name] = nil }
            if objects[path]?.isEmpty == true { objects[path] = nil }
        }

        /// Takes `PropertiesChanged`; changes of unknown objects are of no interest.
        mutating func change(_ path: String, _ interface: String, _ changed: Properties, invalidated: [String]) {
            guard objects[path]?[interface] != nil else { return }
            for (name, value) in changed { objects[path]?[interface]?[name] = value }
            for name in invalidated { objects[path]?[interface]?[name] = nil }
        }

        mutating func removeAll() { objects = [:] }
    }
#endif
