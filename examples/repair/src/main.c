#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AMOUNTS_MAX = 1000 };

/* "12.5" and "-3" and "7.25" as cents. */
static long cents(const char *text) {
    long whole = labs(strtol(text, NULL, 10)) * 100;
    const char *point = strchr(text, '.');
    if (point != NULL && point[1] >= '0' && point[1] <= '9') {
        whole += (point[1] - '0') * 10;
        if (point[2] >= '0' && point[2] <= '9')
            whole += point[2] - '0';
    }
    return text[0] == '-' ? -whole : whole;
}

int main(void) {
    static long amounts[AMOUNTS_MAX];
    char line[64];
    size_t count = 0;
    while (count < AMOUNTS_MAX && fgets(line, sizeof line, stdin) != NULL)
        amounts[count++] = cents(line);
    printf("%ld\n", ledger_total(amounts, count));
    return 0;
}
