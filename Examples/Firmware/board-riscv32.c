// QEMU's virt with one RV32 hart: UART 16550 at 0x10000000, the CLINT's timer of 10 MHz at 0x0200bff8.

#include "board.h"

static volatile uint8_t *const uart = (volatile uint8_t *)0x10000000;
static volatile uint32_t *const timer = (volatile uint32_t *)0x0200bff8;
enum { UART_DATA, UART_FIFO = 2, UART_LINE_STATUS = 5 };
enum { TICK_NANOSECONDS = 100 };

extern uint8_t data_source[], data_start[], data_end[], bss_start[], bss_end[];

static void stop(void) {
    board_print("the processor met a fault\n");
    board_exit(3);
}

__attribute__((used)) static void start(void) {
    __asm__ volatile("csrw mtvec, %0" : : "r"((uintptr_t)stop & ~(uintptr_t)3));
    uint8_t *from = data_source;
    for (uint8_t *to = data_start; to < data_end;) { *to++ = *from++; }
    for (uint8_t *to = bss_start; to < bss_end;) { *to++ = 0; }
    uart[UART_FIFO] = 1;
    board_exit(board_main());
}

__attribute__((naked, section(".vectors"), used)) void _start(void) {
    __asm__ volatile("la sp, stack_high\n j start");
}

int64_t board_now(void) {
    uint32_t high, low;
    do {
        high = timer[1];
        low = timer[0];
    } while (timer[1] != high);
    static int64_t first = -1;  // the counter goes on through a reset
    int64_t now = (int64_t)((uint64_t)high << 32 | low) * TICK_NANOSECONDS;
    if (first < 0) { first = now; }
    return now - first;
}

int board_serial_read(void) { return uart[UART_LINE_STATUS] & 1 ? uart[UART_DATA] : -1; }

void board_serial_write(const void *bytes, size_t count) {
    const uint8_t *byte = bytes;
    for (; count > 0; count--) {
        while (!(uart[UART_LINE_STATUS] & 0x20)) {}
        uart[UART_DATA] = *byte++;
    }
}

// The three instructions in this order, none of them compressed, within one page.
__attribute__((naked, aligned(16))) uintptr_t semihosting(uintptr_t operation, const void *arguments) {
    (void)operation, (void)arguments;
    __asm__ volatile(".option push\n .option norvc\n slli x0, x0, 0x1f\n ebreak\n srai x0, x0, 7\n ret\n .option pop");
}
