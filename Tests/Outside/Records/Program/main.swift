import FerryForApp

// A record goes to disk, in a file that the first argument names.
let store = try RecordStore.open(CommandLine.arguments[1])
let record = try await store.append(Array("21.5".utf8), to: "collector", stream: "temperature")
print("\(record) is on disk")
