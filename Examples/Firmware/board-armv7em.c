// MPS2 with application note 386 (ARM DAI 0386): Cortex-M4, 4 MB of code memory, CMSDK UART and timer (ARM DDI 0479).

#include "board.h"

static volatile uint32_t *const uart = (volatile uint32_t *)0x40004000;
static volatile uint32_t *const timer = (volatile uint32_t *)0x40000000;
enum { UART_DATA, UART_STATE, UART_CONTROL, UART_DIVIDER = 4 };
enum { TIMER_CONTROL, TIMER_VALUE, TIMER_RELOAD };
enum { TICK_NANOSECONDS = 40 };

extern uint8_t data_source[], data_start[], data_end[], bss_start[], bss_end[];

static void start(void) {
    uint8_t *from = data_source;
    for (uint8_t *to = data_start; to < data_end;) { *to++ = *from++; }
    for (uint8_t *to = bss_start; to < bss_end;) { *to++ = 0; }
    uart[UART_DIVIDER] = 217;  // 115 200 baud at 25 MHz
    uart[UART_CONTROL] = 3;    // send and receive
    timer[TIMER_RELOAD] = timer[TIMER_VALUE] = UINT32_MAX;
    timer[TIMER_CONTROL] = 1;
    board_exit(board_main());
}

static void stop(void) {
    board_print("the processor met a fault\n");
    board_exit(3);
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_high, start, stop, stop, stop, stop, stop, stop, stop, stop, stop, stop, stop, stop, stop, stop,
};

int64_t board_now(void) {
    static uint32_t before = UINT32_MAX;
    static int64_t ticks;
    uint32_t value = timer[TIMER_VALUE];
    ticks += before - value;  // it counts down, and from 0 goes to its reload value
    before = value;
    return ticks * TICK_NANOSECONDS;
}

int board_serial_read(void) { return uart[UART_STATE] & 2 ? (int)(uart[UART_DATA] & 0xff) : -1; }

void board_serial_write(const void *bytes, size_t count) {
    const uint8_t *byte = bytes;
    for (; count > 0; count--) {
        while (uart[UART_STATE] & 1) {}
        uart[UART_DATA] = *byte++;
    }
}

uintptr_t semihosting(uintptr_t operation, const void *arguments) {
    register uintptr_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
