//! Stable error codes, and the fault of one object from outside.

use std::borrow::Cow;
use std::fmt;

macro_rules! error_codes {
    ($($(#[doc = $group:literal])* $name:ident => $text:literal,)+) => {
        /// Every machine code a packet can carry; `docs/errors.md` explains each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum ErrorCode { $($name,)+ }

        impl ErrorCode {
            /// All codes, in the order of their families.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns the text a packet carries.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

error_codes! {
    // command line and process
    InvalidArguments => "invalid_arguments",
    InternalError => "internal_error",
    OutputUnwritable => "output_unwritable",

    // pure report contracts (docs/spec/periodic-report-core.md 12)
    InputUnreadable => "input_unreadable",
    InputUnsafe => "input_unsafe",
    InputInvalid => "input_invalid",
    DerivedValueMismatch => "derived_value_mismatch",
    ReportArtifactTooLarge => "report_artifact_too_large",

    // generate (docs/spec/generate.md 6)
    ReportGenerationNotAllowed => "report_generation_not_allowed",
    ReportSourceMissing => "report_source_missing",
    ReportSourcesFailed => "report_sources_failed",
    ReportWindowInvalid => "report_window_invalid",
    ReportTimezoneUnknown => "report_timezone_unknown",
    ReportOutConflict => "report_out_conflict",
    ReportOutUnwritable => "report_out_unwritable",
    ReportArtifactNotRendered => "report_artifact_not_rendered",

    // store (docs/spec/kernel.md 13)
    StoreBusy => "store_busy",
    StoreCorrupt => "store_corrupt",
    StoreWriteFailed => "store_write_failed",
    SchemaUnsupported => "schema_unsupported",
    LockAcquireTimeout => "lock_acquire_timeout",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.as_str())
    }
}

/// One fault of an object from outside: which place, and what is wrong with it.
///
/// It never holds the offending value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at} {reason}")]
pub struct ContractError {
    /// The machine code of the refusal.
    pub code: ErrorCode,
    /// The place, such as `candidates[3].source_ref`.
    pub at: String,
    /// What is wrong, as the rest of a sentence.
    pub reason: Cow<'static, str>,
}

impl ContractError {
    /// Says that a value breaks its contract.
    pub fn invalid(at: impl fmt::Display, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::coded(ErrorCode::InputInvalid, at, reason)
    }

    /// Says that a given id, key or digest differs from the one that follows from the input.
    pub fn mismatch(at: impl fmt::Display, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::coded(ErrorCode::DerivedValueMismatch, at, reason)
    }

    /// Says what is wrong under a code of its own.
    pub fn coded(
        code: ErrorCode,
        at: impl fmt::Display,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            code,
            at: at.to_string(),
            reason: reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_snake_case() {
        let mut seen = HashSet::new();
        for code in ErrorCode::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} twice");
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            assert!(text.bytes().all(plain), "{text}");
        }
    }
}
