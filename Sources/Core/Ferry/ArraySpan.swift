extension [UInt8] {
    /// The bytes, lent: the standard library's `span`, for the declared minimum systems too.
    ///
    /// Apple's systems have `Array.span` from 26 on. An array of bytes is never a bridged `NSArray`, so its storage is
    /// contiguous and stays in place as long as the array is borrowed. This property wins over the standard library's in
    /// the files of this package that import `Ferry`; remove it when every declared minimum is 26.
    package var span: Span<UInt8> {
        @_lifetime(borrow self)
        borrowing get {
            let bytes = withUnsafeBufferPointer { $0 }
            return _overrideLifetime(Span(_unsafeElements: bytes), borrowing: self)
        }
    }
}
