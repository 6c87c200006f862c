//! The rules of the house, checked on the sources: who may import whom, what only one file may do.

mod imports;
mod rooms;
mod rules;
mod source;
