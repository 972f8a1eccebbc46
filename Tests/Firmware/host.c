// A "board" that is this machine (Examples/Firmware/board.h), for programs that run on both.

#include "board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char arguments[512];

int64_t board_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int board_serial_read(void) { return -1; }
void board_serial_write(const void *bytes, size_t count) { (void)bytes, (void)count; }
void board_print(const char *text) { fputs(text, stdout); }
void board_arguments(char *words, size_t capacity) { snprintf(words, capacity, "%s", arguments); }
_Noreturn void board_exit(int status) { exit(status); }

long board_read_file(const char *path, void *buffer, size_t capacity) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) { return -1; }
    size_t count = fread(buffer, 1, capacity, file);
    fclose(file);
    return (long)count;
}

int main(int count, char **words) {
    for (int at = 1; at < count; at++) {
        strncat(arguments, words[at], sizeof arguments - strlen(arguments) - 2);
        strcat(arguments, at + 1 < count ? " " : "");
    }
    return board_main();
}
