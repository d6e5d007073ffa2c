//! The log of decisions: hash-chained records, one writer, verification from the bytes on disk.
