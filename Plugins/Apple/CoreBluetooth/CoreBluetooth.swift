// The codes of errors come from a C header.
@_exported public import CCoreBluetooth
// As importing Apple's framework does, importing this module brings these two into scope.
@_exported public import Dispatch
@_exported public import Foundation
