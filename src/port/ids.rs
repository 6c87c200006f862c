//! Fresh random names: instance ids, capture names. Never part of a key.

/// Makes names nobody can guess.
pub trait Ids {
    /// 32 random hex digits; `None` when the system gives no randomness.
    fn fresh(&self) -> Option<String>;
}

/// The system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    fn fresh(&self) -> Option<String> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
