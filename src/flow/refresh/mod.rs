//! `refresh-state`: writes back what was done and settles the Turn if asked to.

mod answer;
mod asked;
mod commit;
mod prepare;
mod run;

pub use asked::{BLOCKED_CLOSEOUT, Refresh, VisionInput};
pub use run::run;
