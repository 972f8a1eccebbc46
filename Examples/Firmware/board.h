/* What the programs need of a board: a serial line, a clock, and a console for people.
 *
 * board-armv7em.c is QEMU's mps2-an386 (Cortex-M4), board-riscv32.c its virt with RV32. Both speak to the console by semihosting
 * (ARM IHI 0067; the RISC-V calls are the same), which a debugger offers on real boards too. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Variables that a reset leaves as they are. Their first contents are random: keep a mark and a checksum beside them. */
#define KEPT_THROUGH_RESET __attribute__((section(".noinit")))

/* Nanoseconds since the last reset. Call it once a minute at least: a 32-bit counter is read. */
int64_t board_now(void);

/* The next byte of the serial line; -1 when there is none yet. */
int board_serial_read(void);
/* Waits until the line has taken all bytes. */
void board_serial_write(const void *bytes, size_t count);

/* A text for people, without a line feed of its own. */
void board_print(const char *text);
/* The words behind `-append` and `arg=`, parted by spaces, ended by a zero byte. */
void board_arguments(char *words, size_t capacity);
/* Reads a file of the computer that runs the board. Returns its bytes, at most `capacity`; -1 when it cannot be opened. */
long board_read_file(const char *path, void *buffer, size_t capacity);
/* Ends the emulator with this status. */
_Noreturn void board_exit(int status);

/* The program. */
int board_main(void);

/* From sections.ld. */
extern uint8_t stack_low[], stack_high[];

#endif
