#include "CCoreBluetooth.h"
