// Swift's Mutex waits for a lock inside libswiftSynchronization, which the thread sanitizer does not see into: it takes
// whatever follows for a race. Preloaded, this waits in its stead, where the sanitizer sees that the lock was taken.
// (SE-0433; swift/stdlib/public/Synchronization/Mutex/LinuxImpl.swift.)

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

// The sanitizer's runtime has this; the symbolizer, which inherits the preloading, has not.
__attribute__((weak)) void __tsan_acquire(void *address);

__attribute__((swiftcall)) void wait_for_lock(uint32_t thread, __attribute__((swift_context)) _Atomic(uint32_t) *word)
    __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");

__attribute__((swiftcall)) void wait_for_lock(uint32_t thread, __attribute__((swift_context)) _Atomic(uint32_t) *word) {
    uint32_t unlocked = 0;
    while (!atomic_compare_exchange_weak_explicit(word, &unlocked, thread, memory_order_acquire, memory_order_relaxed)) {
        unlocked = 0;
        sched_yield();
    }
    if (__tsan_acquire) __tsan_acquire((void *)word);
}
