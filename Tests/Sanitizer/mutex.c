// Where Swift's Mutex does not get a lock at once it has the kernel take it, inside libswiftSynchronization: the thread sanitizer does not
// see that, and takes what follows for a race. Preloaded, this takes the lock in its stead, where the sanitizer sees it.
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

// One that does not wait for it has seen that another thread has the lock. That it is free meanwhile need not be found out.
__attribute__((swiftcall)) _Bool try_once_more(void) __asm__("$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");

__attribute__((swiftcall)) _Bool try_once_more(void) { return 0; }
