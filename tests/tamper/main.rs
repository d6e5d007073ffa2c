//! The audit log from outside: whatever is done to its bytes is reported, and whatever is written
//! into it comes back as it was and harmless.

#[cfg(test)]
mod crash;
#[cfg(test)]
mod forge;
#[cfg(test)]
mod format;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod pairing;
#[cfg(test)]
mod query;
#[cfg(test)]
mod records;
#[cfg(test)]
mod writer;
