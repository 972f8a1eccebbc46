public import Ferry
import FerryCBOR
import FerryDigest

extension SMPClient {
    /// Uploads a firmware image into the slot that does not run; ``setImage(_:confirm:)`` has it started.
    ///
    /// An upload that was broken off goes on where it stopped: the server knows the image by its SHA-256.
    ///
    /// - Parameters:
    ///   - image: the signed image, as MCUboot takes it.
    ///   - number: the image's number, where the device has several.
    ///   - upgradeOnly: whether the device shall refuse a version that is not newer.
    ///   - window: the most requests under way. A server that tells its buffers bounds it, for it needs one of them for its answers.
    ///     Nil for up to 3 there, and for 1 at a server that tells nothing. 1 waits for each answer.
    ///   - progress: told after each answer that got further. It must not block.
    /// - Throws: as ``request(_:_:_:_:_:what:timeout:)``; `smp.noProgress` when the server goes back again and again,
    ///   `smp.answer` for offsets that cannot be, `chunkSizeTooSmall` where no data fits a request.
    public func uploadImage(
        _ image: [UInt8], number: Int = 0, upgradeOnly: Bool = false, window: Int? = nil,
        progress: (@Sendable (SMPProgress) -> Void)? = nil
    ) async throws(FerryError) {
        let first = UploadRequest(
            off: 0, data: [], len: UInt64(image.count), sha: SHA256.digest(of: image), image: number,
            upgrade: upgradeOnly
        )
        try await upload(
            image, .image, SMPCommand.imageUpload, first: first, rest: UploadRequest(off: 0, data: []), "the image",
            window,
            progress)
    }

    /// Writes a file on the device, in place of one of that name.
    ///
    /// - Parameters:
    ///   - name: the file's path on the device: `/lfs/settings.json`.
    ///   - bytes: what it is to hold.
    ///   - progress: told after each answer that got further. It must not block.
    /// - Throws: as ``uploadImage(_:number:upgradeOnly:window:progress:)``.
    public func writeFile(
        _ name: String, _ bytes: [UInt8], progress: (@Sendable (SMPProgress) -> Void)? = nil
    ) async throws(FerryError) {
        // A server appends each piece that comes, so one piece is sent at a time.
        let first = UploadRequest(off: 0, data: [], len: UInt64(bytes.count), name: name)
        try await upload(
            bytes, .files, SMPCommand.file, first: first, rest: UploadRequest(off: 0, data: [], name: name),
            "file \(name.debugDescription)", 1, progress)
    }

    private func upload(
        _ bytes: [UInt8], _ group: SMPGroup, _ command: UInt8, first: UploadRequest, rest: UploadRequest,
        _ what: String,
        _ window: Int?, _ progress: (@Sendable (SMPProgress) -> Void)?
    ) async throws(FerryError) {
        let buffers = try await parameters()
        let limit = try await largestRequest()
        let codec = CBORCodec<UploadRequest>()
        // The bytes around the data; of the largest offset, so that every piece has room.
        let overhead = try UploadOverhead(first: codec.encode(first).count, rest: codec.encode(rest).count)
        try overhead.check(limit, what)
        let depth = buffers.map { min(window ?? 3, max(1, $0.bufferCount - 1)) } ?? window ?? 1
        var upload = SMPUpload(size: bytes.count, window: depth)
        let (answers, source) = AsyncStream<(SMPUpload.Piece, Result<[UInt8], FerryError>)>.makeStream()
        var iterator = answers.makeAsyncIterator()
        var told = -1
        while !upload.isDone {
            while let piece = upload.nextPiece(room: { overhead.room(at: $0, isFirst: $1, in: limit) }) {
                var body = piece.isFirst ? first : rest
                body.off = UInt64(piece.offset)
                body.data = Array(bytes[piece.offset..<piece.offset + piece.count])
                // A first request has the device erase its flash.
                start(
                    .write, group, command, try codec.encode(body),
                    timeout: piece.isFirst ? max(timeout, .seconds(40)) : nil
                ) { source.yield((piece, $0)) }
            }
            guard let (piece, result) = await iterator.next() else {
                throw FerryError(
                    .cancelled,
                    "The upload of \(what) was cancelled after \(upload.confirmed) of \(bytes.count) bytes.",
                    fate: .mayHaveArrived)
            }
            switch result {
            case .success(let message):
                let answer: UploadAnswer = try Self.answer(in: message, what)
                guard let offset = answer.off.flatMap(Int.init(exactly:)) else {
                    throw FerryError(.smpAnswer, "The server's answer for \(what) does not say what it wants next.")
                }
                try upload.answered(piece, offset: offset)
                if upload.isDone, answer.match == false {
                    throw FerryError(
                        .smpAnswer, "The server has all of \(what), and it is not the uploaded data. Upload it again.")
                }
            case .failure(let error) where error.code == .timedOut: try upload.wasLost(piece)
            case .failure(let error): throw error
            }
            if upload.confirmed > told {
                told = upload.confirmed
                progress?(SMPProgress(bytes: told, of: bytes.count))
            }
        }
    }
}

/// What an upload's requests have besides data, in bytes.
struct UploadOverhead: Sendable {
    /// Of a request without data at offset 0, header included: a first one, and any other.
    private let first: Int
    private let rest: Int

    /// - Parameters: the sizes of bodies without data, at offset 0.
    init(first: Int, rest: Int) {
        self.first = first + SMPHeader.byteCount
        self.rest = rest + SMPHeader.byteCount
    }

    /// How many bytes of data fit a request of at most `limit` bytes.
    func room(at offset: Int, isFirst: Bool, in limit: Int) -> Int {
        // The data's length and the offset are counted with a byte each already.
        let space = limit - (isFirst ? first : rest) - (Self.headCount(offset) - 1)
        return max(0, space - (Self.headCount(max(0, space - 2)) - 1))
    }

    /// Refuses what would never end: requests without data.
    func check(_ limit: Int, _ what: String) throws(FerryError) {
        guard room(at: 0, isFirst: true, in: limit) >= 1, room(at: .max, isFirst: false, in: limit) >= 4 else {
            throw FerryError(
                .chunkSizeTooSmall,
                "The server takes requests of \(limit) bytes; the first one for \(what) needs \(max(first + 1, rest + 12)). Raise the"
                    + " ATT_MTU, or build the device with reassembly (CONFIG_MCUMGR_TRANSPORT_BT_REASSEMBLY).",
                fate: .nothingSent)
        }
    }

    /// The bytes of a CBOR head for a number (RFC 8949, 3).
    static func headCount(_ number: Int) -> Int {
        // An Int of 32 bits does not have the last bound.
        switch UInt64(number.magnitude) {
        case ..<24: 1
        case ..<0x100: 2
        case ..<0x1_0000: 3
        case ..<0x1_0000_0000: 5
        default: 9
        }
    }
}
