public import Ferry

extension SMPClient {
    /// The text, as the device sends it back.
    ///
    /// - Throws: as ``request(_:_:_:_:_:what:timeout:)``; so do all commands.
    public func echo(_ text: String) async throws(FerryError) -> String {
        let answer: EchoAnswer = try await request(
            .write, .system, SMPCommand.echo, EchoRequest(d: text), what: "the echo")
        return answer.r
    }

    /// What the device says of itself.
    ///
    /// - Parameter format: the wanted fields, a letter each as of `uname`: `s` for the kernel's name, `v` for its version, `a` for
    ///   everything; nil for the kernel's name.
    public func information(_ format: String? = nil) async throws(FerryError) -> String {
        let answer: InformationAnswer = try await request(
            .read, .system, SMPCommand.information, InformationRequest(format: format), what: "information")
        return answer.output
    }

    /// Starts the device anew. It answers first; the link ends soon after.
    public func reset() async throws(FerryError) {
        let _: Empty = try await request(.write, .system, SMPCommand.reset, Empty(), what: "the reset")
    }

    /// Runs a line in the device's shell, and returns what it printed and its status.
    public func shell(_ arguments: [String]) async throws(FerryError) -> (output: String, status: Int) {
        let answer: ShellAnswer = try await request(
            .write, .shell, SMPCommand.shell, ShellRequest(argv: arguments), what: "the shell's line")
        return (answer.o, answer.ret ?? 0)
    }

    // MARK: Images

    /// What the image slots hold.
    public func images() async throws(FerryError) -> [SMPImageState] {
        let answer: ImageStateAnswer = try await request(
            .read, .image, SMPCommand.imageState, Empty(), what: "the images' state")
        return answer.images
    }

    /// Has an image tried at the next start, or kept for good.
    ///
    /// - Parameters:
    ///   - hash: which image (``SMPImageState/hash``); nil for the one that runs, to confirm it.
    ///   - confirm: whether it is kept. Otherwise the device goes back to the one before unless the new one is confirmed.
    /// - Returns: what the slots hold then.
    @discardableResult
    public func setImage(_ hash: [UInt8]?, confirm: Bool) async throws(FerryError) -> [SMPImageState] {
        let answer: ImageStateAnswer = try await request(
            .write, .image, SMPCommand.imageState, ImageStateRequest(hash: hash, confirm: confirm),
            what: confirm ? "the confirmation" : "the test of the image")
        return answer.images
    }

    /// Erases a slot; the one to upload to by default. It takes seconds.
    public func eraseImage(slot: Int? = nil, timeout: Duration = .seconds(40)) async throws(FerryError) {
        let _: Empty = try await request(
            .write, .image, SMPCommand.imageErase, ImageEraseRequest(slot: slot), what: "erasing", timeout: timeout)
    }

    // MARK: Settings

    /// A setting's value, as bytes.
    public func setting(_ name: String) async throws(FerryError) -> [UInt8] {
        let answer: SettingAnswer = try await request(
            .read, .settings, SMPCommand.setting, SettingRequest(name: name), what: "setting \(name.debugDescription)")
        return answer.val
    }

    /// Sets a setting in the device's memory; ``saveSettings()`` keeps it.
    public func setSetting(_ name: String, to value: [UInt8]) async throws(FerryError) {
        let _: Empty = try await request(
            .write, .settings, SMPCommand.setting, SettingRequest(name: name, val: value),
            what: "setting \(name.debugDescription)")
    }

    /// Deletes a setting.
    public func deleteSetting(_ name: String) async throws(FerryError) {
        let _: Empty = try await request(
            .write, .settings, SMPCommand.settingDelete, SettingRequest(name: name),
            what: "deleting setting \(name.debugDescription)")
    }

    /// Has the device's parts take the settings that were set.
    public func commitSettings() async throws(FerryError) {
        let _: Empty = try await request(
            .write, .settings, SMPCommand.settingCommit, Empty(), what: "the commit of settings")
    }

    /// Keeps the settings over a restart.
    public func saveSettings() async throws(FerryError) {
        let _: Empty = try await request(
            .write, .settings, SMPCommand.settingStore, Empty(), what: "saving the settings")
    }

    // MARK: Files

    /// A file's size in bytes.
    public func fileSize(_ name: String) async throws(FerryError) -> Int {
        let answer: FileStatusAnswer = try await request(
            .read, .files, SMPCommand.fileStatus, FileNameRequest(name: name), what: "file \(name.debugDescription)")
        guard let size = Int(exactly: answer.len) else {
            throw FerryError(.smpAnswer, "The server says that file \(name.debugDescription) has \(answer.len) bytes.")
        }
        return size
    }

    /// Has the device close the file that it keeps open.
    public func closeFile() async throws(FerryError) {
        let _: Empty = try await request(.write, .files, SMPCommand.fileClose, Empty(), what: "closing the file")
    }

    /// A file's bytes, from first to last: each request asks for what follows the answer before.
    ///
    /// - Parameters:
    ///   - name: the file's path on the device: `/lfs/log.txt`.
    ///   - maximumSize: the largest file that is taken, in bytes.
    ///   - progress: told after each answer. It must not block.
    /// - Throws: also `messageTooLarge` for a larger file, `smp.answer` for answers that do not fit together.
    public func readFile(
        _ name: String, maximumSize: Int = 16 << 20, progress: (@Sendable (SMPProgress) -> Void)? = nil
    ) async throws(FerryError) -> [UInt8] {
        let what = "file \(name.debugDescription)"
        var bytes: [UInt8] = []
        var size: Int?
        while size == nil || bytes.count < size ?? 0 {
            let answer: DownloadAnswer = try await request(
                .read, .files, SMPCommand.file, DownloadRequest(off: UInt64(bytes.count), name: name), what: what)
            if size == nil {
                guard let length = answer.len else {
                    throw FerryError(.smpAnswer, "The first answer for \(what) does not say how long it is.")
                }
                guard length <= UInt64(max(maximumSize, 0)) else {
                    throw FerryError(
                        .messageTooLarge,
                        "\(what) has \(length) bytes; the limit is \(maximumSize). Raise maximumSize to read it.")
                }
                size = Int(length)
            }
            let missing = (size ?? 0) - bytes.count
            guard answer.off == UInt64(bytes.count), answer.data.count <= missing, !answer.data.isEmpty || missing == 0
            else {
                throw FerryError(
                    .smpAnswer,
                    "Asked for \(what) from byte \(bytes.count) of \(size ?? 0) on, the server sent \(answer.data.count) bytes from"
                        + " \(answer.off) on. Start again.")
            }
            bytes += answer.data
            progress?(SMPProgress(bytes: bytes.count, of: size ?? 0))
        }
        return bytes
    }
}

/// How far an upload or a download has come.
public struct SMPProgress: Sendable, Hashable {
    /// Bytes that the other side has.
    public let bytes: Int
    /// Bytes of the whole.
    public let total: Int

    init(bytes: Int, of total: Int) {
        self.bytes = bytes
        self.total = total
    }

    /// From 0 to 1.
    public var fraction: Double { total == 0 ? 1 : Double(bytes) / Double(total) }
}
