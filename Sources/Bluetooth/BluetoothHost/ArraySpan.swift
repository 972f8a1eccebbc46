extension [UInt8] {
    /// The bytes, lent: the standard library's `span`, for the declared minimum systems too.
    ///
    /// The same as in `Ferry`, which this module does not import: Apple's systems have `Array.span` from 26 on.
    var span: Span<UInt8> {
        @_lifetime(borrow self)
        borrowing get {
            let bytes = withUnsafeBufferPointer { $0 }
            return _overrideLifetime(Span(_unsafeElements: bytes), borrowing: self)
        }
    }
}
