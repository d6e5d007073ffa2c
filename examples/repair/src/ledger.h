#ifndef LEDGER_H
#define LEDGER_H

#include <stddef.h>

/* The sum of count amounts, in cents. */
long ledger_total(const long *amounts, size_t count);

#endif
