//! What loopx keeps: SQLite journals and owner-private files. It stores and never decides.
//!
//! | file | keeps |
//! |---|---|
//! | `database` | how every database of the product is made, opened, migrated and written |
//! | `private_file` | owner-only files: atomic replacement, create-once, reads that follow no link |
//! | `report_folder` | reports on disk: three files that appear together or not at all |
//! | `inbox` | the database of one inbox and its exports |
//! | `lock` | advisory locks in one fixed order |
//! | `backup` | copies of all of it in one folder, proved and brought back |
//! | `state`, `rows`, `journal` | the state store: one transaction per mutation of one goal, and its rows |
//! | `export` | readable copies of event and run rows, rebuilt at need and never read |
//! | `schema` | the tables of the state store, as an append-only list of migrations |
//!
//! Status is never derived here: rows go in and out as the contract's types.

pub mod backup;
pub mod database;
pub mod document;
pub mod error;
pub mod export;
pub mod inbox;
pub mod journal;
pub mod lock;
pub mod maintenance;
pub mod private_file;
pub mod report_folder;
pub mod rows;
pub mod schema;
mod soundness;
pub mod state;

pub use error::StoreError;
