//! Every digest and id recipe; the only user of the hash crates.
//!
//! No wall-clock value enters a key. A new recipe is a new function here with a golden vector.

use std::fmt;

use base64::Engine as _;
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::canonical::{self, NotCanonical};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the 64 lower-case hex digits.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Returns the first `digits` hex digits, at most all 64.
    pub fn short(&self, digits: usize) -> String {
        let mut all = self.hex();
        all.truncate(digits);
        all
    }

    /// Reads `sha256:` and 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        if !is_digest_text(text) {
            return None;
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            // 7 is the length of `sha256:`.
            let at = 7 + 2 * index;
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Prints `sha256:` and the hex digits, the form every packet uses.
impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

/// Digest of the canonical form of a value: packets, profiles, documents, revisions.
pub fn digest(value: &Value) -> Result<Digest, NotCanonical> {
    Ok(content_digest(canonical::compact(value)?.as_bytes()))
}

/// The same as bare hex: operations, cards, notes, recovery digests.
pub fn digest_hex(value: &Value) -> Result<String, NotCanonical> {
    Ok(digest(value)?.hex())
}

/// `prefix_` and 24 hex digits over the canonical form: run, document, generation and sink ids.
pub fn short_id(prefix: &str, value: &Value) -> Result<String, NotCanonical> {
    Ok(format!("{prefix}_{}", digest(value)?.short(24)))
}

/// Digest over a positional list: provider actions and their receipts.
pub fn semantic_key(parts: &[Value]) -> Result<Digest, NotCanonical> {
    digest(&Value::Array(parts.to_vec()))
}

/// Digest over texts joined by NUL: request ids, announcement keys, lane names.
pub fn nul_joined(parts: &[&str]) -> Digest {
    content_digest(parts.join("\0").as_bytes())
}

/// Digest of bytes as they are: artifacts, files.
pub fn content_digest(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// `sha256-` and base64 over a text: how a page's content policy names its own style and script.
pub fn policy_source(text: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
    format!("sha256-{encoded}")
}

/// [`content_digest`] of bytes that come in pieces.
#[derive(Default)]
pub struct Running(Sha256);

impl Running {
    /// Returns the digest of everything written.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl std::io::Write for Running {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Digest of the compact ASCII form: replan obligation ids.
pub fn ascii_digest(value: &Value) -> Result<Digest, NotCanonical> {
    Ok(content_digest(canonical::compact_ascii(value)?.as_bytes()))
}

/// 16 hex digits over the spaced ASCII form of an event without its id.
pub fn event_id(event: &Value) -> Result<String, NotCanonical> {
    Ok(content_digest(canonical::spaced_ascii(event)?.as_bytes()).short(16))
}

/// 12 hex digits of the SHA-1 of `role|source_section|index|text`: generated todo ids.
pub fn todo_suffix(role: &str, section: &str, index: u64, text: &str) -> String {
    let mut all = hex(&Sha1::digest(
        format!("{role}|{section}|{index}|{text}").as_bytes(),
    ));
    all.truncate(12);
    all
}

/// Tells whether a text is `sha256:` and 64 lower-case hex digits.
pub fn is_digest_text(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(is_hex_64)
}

/// Tells whether a text is 64 lower-case hex digits.
pub fn is_hex_64(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn hex(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_trigger_id_of_the_contract_is_reproduced() {
        let value = json!({
            "trigger_kind": "manual",
            "source_ref": "ledger:manual/1",
            "evidence_digest": "sha256:manual-1",
        });
        assert_eq!(
            short_id("trigger", &value).as_deref(),
            Ok("trigger_95cf373ef0da132c8345711b")
        );
    }

    #[test]
    fn the_replan_obligation_of_the_contract_is_reproduced() {
        let value = json!({
            "agent_id": "lane-a",
            "frontier_identity": null,
            "rearmed_after_obligation_id": null,
            "schema_version": "autonomous_replan_obligation_v0",
            "trigger_identity": [{"agent_id": "lane-a", "kind": "vision_successor_required"}],
        });
        let id = ascii_digest(&value).map(|digest| digest.short(16));
        assert_eq!(id.as_deref(), Ok("90740ca02eede1e1"));
    }

    #[test]
    fn the_event_id_of_the_contract_is_reproduced() {
        let event = json!({
            "agent_id": "lane-a",
            "boundary": {"absolute_paths_recorded": false, "credential_values_recorded": false,
                "raw_logs_recorded": false, "raw_session_transcript_recorded": false,
                "raw_task_text_recorded": false, "raw_trajectory_recorded": false},
            "details": {"binding_kind": "todo", "effective_action": "normal_run", "should_run": true},
            "event_kind": "quota_should_run", "goal_id": "demo-goal",
            "recorded_at": "2026-09-18T09:30:00Z", "run_id": "turn-3",
            "schema_version": "loopx_rollout_event_v0", "status": "normal_run",
            "summary": "normal_run", "todo_id": "todo_bd680625bfe0",
        });
        assert_eq!(event_id(&event).as_deref(), Ok("bb4e53d154ab5bf2"));
    }

    #[test]
    fn known_digests_of_bytes_and_joined_texts_hold() {
        assert_eq!(
            content_digest(b"").to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        let mut running = Running::default();
        std::io::copy(&mut b"abc".as_slice(), &mut running).expect("memory");
        assert_eq!(running.finish(), content_digest(b"abc"));
        assert_eq!(nul_joined(&["a", "b"]), content_digest(b"a\0b"));
        assert_eq!(
            semantic_key(&[json!("a"), json!(1)]),
            Ok(content_digest(b"[\"a\",1]"))
        );
        assert_eq!(todo_suffix("agent", "", 1, "x"), "6b0dd4f42c56");
        assert!(is_digest_text(&content_digest(b"x").to_string()));
        assert!(!is_digest_text("sha256:ABC"));
        assert_eq!(
            Digest::parse(&content_digest(b"x").to_string()),
            Some(content_digest(b"x"))
        );
    }
}
