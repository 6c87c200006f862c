//! What the program prints: one indented object, errors on standard error, and the exit code that belongs to them.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

/// A refusal or failure, as the program types it.
#[derive(Clone)]
pub(crate) struct Failure {
    kind: &'static str,
    subtype: String,
    code: Option<i64>,
    rc: u8,
    more: Value,
}

impl Failure {
    /// A failure without a code of the platform.
    pub(crate) fn local(kind: &'static str, subtype: &str, rc: u8) -> Self {
        let more = match kind {
            "validation" => json!({"param": "--x"}),
            "config" | "authentication" => json!({"hint": "<hint>"}),
            "internal" => json!({"hint": "<hint>"}),
            _ => json!({}),
        };
        Self {
            kind,
            subtype: subtype.to_owned(),
            code: None,
            rc,
            more,
        }
    }

    /// A person's login lacks what a command declares: said without a request.
    pub(crate) fn missing_scopes(scopes: &[&str]) -> Self {
        let mut failure = Self::local("authorization", "missing_scope", 3);
        failure.more = json!({"missing_scopes": scopes});
        failure
    }

    pub(crate) fn argument() -> Self {
        Self::local("validation", "invalid_argument", 2)
    }

    /// A failure the platform gave a code for.
    pub(crate) fn code(code: i64) -> Self {
        let (kind, subtype, rc, more) = typed(code);
        let mut more = more;
        more["log_id"] = json!("fakelog");
        Self {
            kind,
            subtype: subtype.to_owned(),
            code: Some(code),
            rc,
            more,
        }
    }

    /// A page of a gateway instead of an answer.
    pub(crate) fn page(status: i64) -> Self {
        let (kind, subtype, rc) = match status {
            404 => ("api", "not_found", 1),
            504 => return Self::local("network", "timeout", 4),
            500.. => ("network", "server_error", 4),
            _ => ("api", "unknown", 1),
        };
        let more = if kind == "network" {
            json!({"retryable": true, "log_id": "fakelog"})
        } else {
            json!({})
        };
        Self {
            kind,
            subtype: subtype.to_owned(),
            code: Some(status),
            rc,
            more,
        }
    }

    fn object(&self, identity: &str) -> Value {
        let mut error = json!({"type": self.kind, "subtype": self.subtype});
        if let Some(code) = self.code {
            error["code"] = json!(code);
        }
        error["message"] = json!("<message>");
        for (name, value) in self.more.as_object().into_iter().flatten() {
            error[name.as_str()] = value.clone();
        }
        if self.kind == "authorization" {
            error["hint"] = json!("<hint>");
            error["identity"] = json!(identity);
        }
        match identity {
            "" => json!({"ok": false, "error": error}),
            identity => json!({"ok": false, "identity": identity, "error": error}),
        }
    }
}

/// How the program types a code of the platform.
fn typed(code: i64) -> (&'static str, &'static str, u8, Value) {
    match code {
        99_991_400 => ("api", "rate_limit", 1, json!({"retryable": true})),
        2_200 | 1_061_001 => ("api", "server_error", 1, json!({"retryable": true})),
        1_069_302 => ("api", "invalid_parameters", 1, json!({})),
        131_005 | 800_030_110 | 3_344_035 => ("api", "not_found", 1, json!({})),
        800_040_114 | 1_254_291 => ("api", "conflict", 1, json!({"retryable": true})),
        800_040_802 => ("api", "quota_exceeded", 1, json!({})),
        800_010_109 => ("validation", "invalid_argument", 2, json!({})),
        230_027 => ("authorization", "user_unauthorized", 3, json!({})),
        99_991_672 => (
            "authorization",
            "app_scope_not_applied",
            3,
            json!({"missing_scopes": ["x"], "console_url": "<console_url>"}),
        ),
        99_991_676 => (
            "authorization",
            "token_scope_insufficient",
            3,
            json!({"missing_scopes": ["x"]}),
        ),
        99_991_679 => (
            "authorization",
            "missing_scope",
            3,
            json!({"missing_scopes": ["x"]}),
        ),
        99_991_673 => ("authorization", "app_unavailable", 3, json!({})),
        99_991_662 => ("authorization", "app_disabled", 3, json!({})),
        1_061_004 | 1_063_002 | 800_020_304 | 3_344_031 => {
            ("authorization", "permission_denied", 3, json!({}))
        }
        99_991_661 => (
            "authentication",
            "token_missing",
            3,
            json!({"hint": "<hint>"}),
        ),
        99_991_663 | 99_991_668 | 99_991_671 => ("authentication", "token_invalid", 3, json!({})),
        99_991_677 => ("authentication", "token_expired", 3, json!({})),
        10_014 | 20_002 | 99_991_543 => ("config", "invalid_client", 3, json!({"hint": "<hint>"})),
        _ => ("api", "unknown", 1, json!({})),
    }
}

/// One finished call.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) rc: u8,
    pub(crate) delay: Duration,
    /// Dies by signal without printing.
    pub(crate) dies: bool,
}

impl Answer {
    pub(crate) fn text(text: &str) -> Self {
        Self {
            stdout: text.to_owned(),
            stderr: String::new(),
            rc: 0,
            delay: Duration::ZERO,
            dies: false,
        }
    }

    /// An object without an envelope.
    pub(crate) fn bare(value: &Value) -> Self {
        Self::text(&printed(value))
    }

    /// The envelope of an API call.
    pub(crate) fn data(identity: &str, data: &Value) -> Self {
        Self::bare(&json!({"ok": true, "identity": identity, "data": data}))
    }

    pub(crate) fn failed(failure: &Failure, identity: &str) -> Self {
        let identity = if failure.kind == "validation" && failure.code.is_none() {
            ""
        } else {
            identity
        };
        let object =
            serde_json::to_string_pretty(&failure.object(identity)).expect("an object is printed");
        Self {
            stderr: format!("{object}\n"),
            rc: failure.rc,
            ..Self::text("")
        }
    }

    pub(crate) fn value(&self) -> Option<Value> {
        serde_json::from_str(&self.stdout).ok()
    }

    pub(crate) fn print(&self) -> ExitCode {
        use std::io::Write;
        // A reader that went away is the caller's business.
        let _ = std::io::stderr().write_all(self.stderr.as_bytes());
        let _ = std::io::stdout().write_all(self.stdout.as_bytes());
        ExitCode::from(self.rc)
    }

    /// Waits as told, then prints or dies.
    pub(crate) fn finish(&self) -> ExitCode {
        std::thread::sleep(self.delay);
        if self.dies {
            std::process::abort();
        }
        self.print()
    }
}

/// One indented object; angle brackets and ampersands are escaped on standard output.
pub(crate) fn printed(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).expect("a value is printed");
    format!(
        "{}\n",
        text.replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
    )
}
