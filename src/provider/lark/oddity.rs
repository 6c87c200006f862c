//! Whether the answers so far are those of a program that is too old to know what it was asked.
//!
//! Nobody asks a program that works for its version. One that failed like an old one is asked once, unless this command may already have
//! written something outside: then what became of that is the answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::contract::channel::ids::ProfileName;
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::port::channel::{ProviderError, ProviderErrorKind as Kind};

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Oddity(Mutex<Seen>);

#[derive(Debug, Default)]
enum Seen {
    #[default]
    Nothing,
    /// A call under this profile was not understood.
    Odd(ProfileName),
    /// The version was asked, or something may have been written: nobody asks any more.
    Settled,
}

impl Oddity {
    /// Looks at the result of a call and hands it on.
    pub(super) fn look<T>(
        &self,
        profile: &ProfileName,
        result: Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        if result.as_ref().is_err_and(is_odd) {
            self.note(profile);
        }
        result
    }

    /// Looks at the result of a write and hands it on.
    pub(super) fn acted<T>(&self, result: Result<T, ProviderError>) -> Result<T, ProviderError> {
        let has_effect = |error: &ProviderError| error.effect != ExternalWriteOutcome::None;
        if result.as_ref().err().is_none_or(has_effect) {
            *self.held() = Seen::Settled;
        }
        result
    }

    /// Notes a call that was not understood.
    pub(super) fn note(&self, profile: &ProfileName) {
        let mut seen = self.held();
        if matches!(*seen, Seen::Nothing) {
            *seen = Seen::Odd(profile.clone());
        }
    }

    /// The profile of the call that was not understood, once.
    pub(super) fn take(&self) -> Option<ProfileName> {
        let mut seen = self.held();
        let Seen::Odd(profile) = &*seen else {
            return None;
        };
        let profile = profile.clone();
        *seen = Seen::Settled;
        Some(profile)
    }

    fn held(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command line that was not understood, or an answer that is not the envelope.
fn is_odd(error: &ProviderError) -> bool {
    match error.kind {
        Kind::PayloadInvalid => true,
        Kind::Rejected | Kind::Failed => error.exit == Some(2) && error.code.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Ending;
    use crate::provider::lark::failure;

    fn refused(rc: i32, class: &str) -> ProviderError {
        let said = format!("{{\"ok\":false,\"error\":{{\"type\":\"{class}\"}}}}");
        failure::ended(Ending::Exit(rc), "", &said)
    }

    fn profile() -> ProfileName {
        ProfileName::new("bot").expect("a name")
    }

    #[test]
    fn a_usage_error_and_an_answer_without_an_envelope_are_odd_once_and_a_refusal_is_not() {
        for (error, odd) in [
            (refused(2, "validation"), true),
            (failure::ended(Ending::Exit(2), "", "unknown flag"), true),
            (failure::unreadable(), true),
            (refused(1, "api"), false),
            (refused(4, "network"), false),
            (refused(3, "authentication"), false),
        ] {
            let oddity = Oddity::default();
            assert!(oddity.look(&profile(), Err::<(), _>(error)).is_err());
            assert_eq!(oddity.take().is_some(), odd, "{error:?}");
            assert!(oddity.take().is_none());
        }
    }

    #[test]
    fn after_a_write_nothing_is_odd() {
        let oddity = Oddity::default();
        let refusal = refused(2, "validation");
        assert!(oddity.acted(Err::<(), _>(refusal)).is_err());
        oddity.note(&profile());
        assert!(oddity.acted(Ok(())).is_ok());
        oddity.note(&profile());
        assert!(oddity.take().is_none());
        let lost = Oddity::default();
        assert!(lost.acted(Err::<(), _>(failure::unreadable())).is_err());
        lost.note(&profile());
        assert!(lost.take().is_none());
    }
}
