#include "ledger.h"

long ledger_total(const long *amounts, size_t count) {
    long total = 0;
    for (size_t index = 1; index < count; index++)
        total += amounts[index];
    return total;
}
