//! Whole-process timings: `cargo bench`.
//!
//! Every figure is a ratio to something timed in the same run: the pure commands to a floor binary
//! (argument parser and JSON reader, no work), decisions and changes of the store to floors that open
//! the same database, `generate` to its own git calls replayed alone. The
//! last line says whether the budgets hold; the exit code says it too.

mod pure;
mod replay;
mod repository;
mod store;
mod table;

fn main() {
    // The recorder of git calls is this program under another name.
    if replay::is_recorder() {
        replay::record();
    }
    if let Some(kib) = table::child_memory() {
        table::say(&kib.to_string());
        return;
    }
    let mut verdict = table::Verdict::default();
    pure::commands(&mut verdict);
    pure::large_page(&mut verdict);
    store::decisions(&mut verdict);
    repository::generate(&mut verdict);
    verdict.finish();
}
