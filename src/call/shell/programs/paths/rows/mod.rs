//! The table of programs that take paths: one row a family of programs, one file a kind of work.
//! Data only.

mod archives;
mod build;
mod files;
mod text;
mod transfer;

use super::Row;
use crate::call::effects::Access;

const R: Access = Access::Read;
const W: Access = Access::Write;

/// Every row.
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    [text::TEXT, files::FILES, archives::ARCHIVES, transfer::TRANSFER, build::BUILD]
        .into_iter()
        .flatten()
}
