//! Policy files: text to a validated, compiled set, and decisions on effects. Pure: no disk, no clock.
