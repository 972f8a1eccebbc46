// What is the same on both boards: semihosting, and what the library and the compiler ask of a program.

#include "board.h"

uintptr_t semihosting(uintptr_t operation, const void *arguments);
enum { SYS_OPEN = 0x01, SYS_CLOSE = 0x02, SYS_WRITE0 = 0x04, SYS_READ = 0x06, SYS_GET_CMDLINE = 0x15, SYS_EXIT_EXTENDED = 0x20 };
enum { APPLICATION_EXIT = 0x20026, MODE_READ_BINARY = 1 };

void board_print(const char *text) { semihosting(SYS_WRITE0, text); }

void board_arguments(char *words, size_t capacity) {
    uintptr_t block[2] = {(uintptr_t)words, capacity};
    if (semihosting(SYS_GET_CMDLINE, block) != 0) { words[0] = 0; }
}

long board_read_file(const char *path, void *buffer, size_t capacity) {
    size_t length = 0;
    while (path[length] != 0) { length++; }
    uintptr_t open[3] = {(uintptr_t)path, MODE_READ_BINARY, length};
    uintptr_t file = semihosting(SYS_OPEN, open);
    if (file == UINTPTR_MAX) { return -1; }
    uintptr_t read[3] = {file, (uintptr_t)buffer, capacity};
    uintptr_t missing = semihosting(SYS_READ, read);
    semihosting(SYS_CLOSE, &file);
    return missing > capacity ? -1 : (long)(capacity - missing);
}

_Noreturn void board_exit(int status) {
    uintptr_t block[2] = {APPLICATION_EXIT, (uintptr_t)status};
    for (;;) { semihosting(SYS_EXIT_EXTENDED, block); }
}

int putchar(int character) {
    char text[2] = {(char)character, 0};
    board_print(text);
    return character;
}

uintptr_t __stack_chk_guard = 0x5afe57ac;
void __stack_chk_fail(void) {
    board_print("the stack is damaged\n");
    board_exit(4);
}
