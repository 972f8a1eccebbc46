// ferry.h is implemented in Swift (Plugins/Languages/FerryC). This file holds the layout that programs are compiled against.

#include "ferry.h"

_Static_assert(sizeof(ferry_limits) == 24, "ferry_limits has changed its size");
_Static_assert(offsetof(ferry_limits, stall_nanoseconds) == 16, "ferry_limits has changed its layout");
_Static_assert(offsetof(ferry_event, count) == 16, "ferry_event has changed its layout");
