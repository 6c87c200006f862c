//! What a failed call says: the kind of the failure, and whether a write may have happened all the same.
//!
//! A type and a code decide, never a sentence: the sentences of the program are not stable. The rule of effects is the table of
//! `docs/spec/lark-cli.md` 1.1; the list of codes that prove a refusal is that of section 8.

use serde_json::Value;

use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::json;
use crate::port::channel::{ProviderError, ProviderErrorKind as Kind};
use crate::process::{Ending, SpawnError};

/// The code of a group whose messages the application may not read.
pub(crate) const GROUP_HISTORY_CODE: i64 = 230_027;

/// The refusals that stand for themselves also when the program does not know their code.
const LISTED_CODES: [i64; 44] = [
    429,
    10_014,
    20_002,
    40_002,
    91_403,
    131_005,
    131_006,
    230_001,
    230_002,
    230_011,
    230_020,
    230_025,
    230_027,
    230_099,
    230_110,
    231_003,
    231_007,
    232_011,
    232_033,
    200_621,
    300_020,
    1_061_004,
    1_063_002,
    1_069_302,
    1_069_303,
    1_069_307,
    1_254_291,
    1_770_002,
    3_344_031,
    3_344_035,
    99_991_400,
    99_991_543,
    99_991_661,
    99_991_662,
    99_991_663,
    99_991_668,
    99_991_671,
    99_991_672,
    99_991_673,
    99_991_676,
    99_991_677,
    99_991_679,
    400_000_059,
    400_002_577,
];
const LISTED_LONG_CODES: [i64; 5] = [
    800_010_109,
    800_020_304,
    800_030_110,
    800_040_114,
    1_000_040_351,
];

/// The error object of a call, as far as it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorObject {
    pub(super) class: String,
    pub(super) subtype: String,
    pub(super) code: Option<i64>,
}

impl ErrorObject {
    /// Finds the error in what a failed call printed: an object on standard error, or a raw body on standard output.
    pub(super) fn find(stdout: &str, stderr: &str) -> Option<Self> {
        [stderr, stdout]
            .into_iter()
            .find_map(|text| Self::read(&first_object(text)?))
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |value: &Value, name: &str| {
            value
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        if let Some(error) = value.get("error").filter(|error| error.is_object()) {
            return Some(Self {
                class: text(error, "type"),
                subtype: text(error, "subtype"),
                code: number(error.get("code")),
            });
        }
        let code = number(value.get("code"))?;
        Some(Self {
            class: "api".to_owned(),
            subtype: String::new(),
            code: Some(code),
        })
    }
}

/// A code of 0 is the provider's word for success: under an error it says nothing.
fn number(value: Option<&Value>) -> Option<i64> {
    value.and_then(Value::as_i64).filter(|code| *code != 0)
}

/// Returns the first JSON object that starts at the beginning of a line.
pub(super) fn first_object(text: &str) -> Option<Value> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with('{') {
            let rest = &text[start..];
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            return values.next().and_then(Result::ok).filter(Value::is_object);
        }
        start += line.len();
    }
    None
}

/// Looks for one numeric provider code at any depth of what a call printed.
pub(super) fn mentions_code(text: &str, code: i64) -> bool {
    fn walk(value: &Value, code: i64) -> bool {
        match value {
            Value::Object(map) => map.iter().any(|(name, inner)| {
                (name == "code" && inner.as_i64() == Some(code)) || walk(inner, code)
            }),
            Value::Array(items) => items.iter().any(|item| walk(item, code)),
            _ => false,
        }
    }
    first_object(text).is_some_and(|value| walk(&value, code))
}

/// Classifies a call that ended without success.
pub(super) fn ended(ending: Ending, stdout: &str, stderr: &str) -> ProviderError {
    let error = ErrorObject::find(stdout, stderr);
    let exit = match ending {
        Ending::Exit(code) => Some(code),
        Ending::Signal(_) => None,
    };
    let refused_history = [stderr, stdout]
        .iter()
        .any(|text| mentions_code(text, GROUP_HISTORY_CODE));
    ProviderError {
        kind: if refused_history {
            Kind::GroupHistoryPermission
        } else {
            kind(exit, error.as_ref())
        },
        effect: effect(exit, error.as_ref()),
        code: error.and_then(|error| error.code),
        exit,
    }
}

/// Classifies a call that has no end of its own.
pub(super) fn spawn(error: &SpawnError) -> ProviderError {
    let (kind, effect) = match error {
        SpawnError::TimedOut => (Kind::Unavailable, ExternalWriteOutcome::Unknown),
        SpawnError::SpawnFailed(_) => (Kind::NotStarted, ExternalWriteOutcome::None),
        SpawnError::ArgumentTooLong | SpawnError::ZeroByte => {
            (Kind::Rejected, ExternalWriteOutcome::None)
        }
    };
    ProviderError {
        kind,
        effect,
        code: None,
        exit: None,
    }
}

/// An answer of a call that ended well but does not say what it must.
pub(super) const fn unreadable() -> ProviderError {
    ProviderError {
        kind: Kind::PayloadInvalid,
        effect: ExternalWriteOutcome::Unknown,
        code: None,
        exit: Some(0),
    }
}

/// Says what a failed write may have done.
fn effect(exit: Option<i32>, error: Option<&ErrorObject>) -> ExternalWriteOutcome {
    use ExternalWriteOutcome::{None, Unknown};
    let Some(exit) = exit else { return Unknown };
    match exit {
        6 | 10 => return None,
        1..=3 => {}
        // The network, the program itself, or an ending that no release documents.
        _ => return Unknown,
    }
    let Some(error) = error else { return Unknown };
    let is_refusal = match (error.class.as_str(), error.code) {
        ("network" | "internal", _) => false,
        ("config", _) => true,
        ("validation", Option::None) => exit == 2,
        (_, Option::None) => matches!(error.subtype.as_str(), "token_missing" | "missing_scope"),
        (_, Some(500..=599)) => false,
        ("authorization" | "authentication" | "validation", Some(_)) => true,
        (_, Some(code)) => match error.subtype.as_str() {
            "server_error" => false,
            "" | "unknown" => is_listed(code),
            _ => error.class == "api" || is_listed(code),
        },
    };
    if is_refusal { None } else { Unknown }
}

fn is_listed(code: i64) -> bool {
    LISTED_CODES.contains(&code) || LISTED_LONG_CODES.contains(&code)
}

/// Says what kind of failure it was.
fn kind(exit: Option<i32>, error: Option<&ErrorObject>) -> Kind {
    let Some(exit) = exit else {
        return Kind::Unavailable;
    };
    let Some(error) = error else {
        return match exit {
            4 => Kind::Unavailable,
            _ => Kind::Failed,
        };
    };
    if let Some(kind) = error.code.and_then(kind_of_code) {
        return kind;
    }
    match (error.class.as_str(), error.subtype.as_str()) {
        ("network", _) => Kind::Unavailable,
        ("authentication" | "auth", _) => Kind::AuthorizationMissing,
        ("authorization" | "permission", _) => Kind::PermissionMissing,
        (_, "rate_limit") => Kind::RateLimited,
        ("api", "not_found") if error.code.is_none() => Kind::NotFound,
        ("internal", _) => Kind::Failed,
        _ if exit == 4 => Kind::Unavailable,
        _ => Kind::Rejected,
    }
}

fn kind_of_code(code: i64) -> Option<Kind> {
    Some(match code {
        GROUP_HISTORY_CODE => Kind::GroupHistoryPermission,
        429 | 230_020 | 99_991_400 => Kind::RateLimited,
        230_002 | 232_011 | 232_033 => Kind::NotInChat,
        99_991_661 | 99_991_663 | 99_991_668 | 99_991_671 | 99_991_677 => {
            Kind::AuthorizationMissing
        }
        1_061_004 | 1_063_002 | 131_006 | 1_069_303 | 91_403 | 800_020_304 | 3_344_031
        | 99_991_662 | 99_991_672 | 99_991_673 | 99_991_676 | 99_991_679 => Kind::PermissionMissing,
        _ => return None,
    })
}

/// Reads the one object a successful call prints.
pub(super) fn one_object(stdout: &str) -> Result<Value, ProviderError> {
    json::parse_object(stdout.trim().as_bytes())
        .map(Value::Object)
        .map_err(|_| unreadable())
}
