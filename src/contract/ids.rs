//! Identities: texts that have been checked once and cannot be wrong afterwards.

use std::fmt;

use super::text;

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes a text that already has the exact form.
            pub fn new(text: impl Into<String>) -> Option<Self> {
                let text = text.into();
                let valid: fn(&str) -> bool = $valid;
                valid(&text).then_some(Self(text))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, out)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

identity!(
    /// A lower-case token, `[a-z][a-z0-9_.-]{0,127}`.
    Token,
    text::is_token
);
identity!(
    /// A version, `[0-9a-z][a-z0-9_.+-]{0,127}`.
    Version,
    text::is_version
);
identity!(
    /// A goal: one path segment (`docs/spec/kernel.md` 2.1).
    GoalId,
    is_goal_id
);
identity!(
    /// An agent in its normal form, `[a-z][a-z0-9_.:@-]{0,79}`.
    AgentId,
    is_agent_id
);
identity!(
    /// A todo, `todo_[a-z0-9_-]{3,64}`.
    TodoId,
    is_todo_id
);
identity!(
    /// One wake of a host, `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`.
    TurnInstanceId,
    is_turn_instance_id
);
identity!(
    /// A Turn: `sha256:` and 64 hex digits.
    TurnKey,
    super::digest::is_digest_text
);
identity!(
    /// An autonomous replan obligation, `replan-` and 16 hex digits.
    ReplanObligationId,
    is_replan_obligation_id
);

impl Token {
    /// Trims and lower-cases a text before it is checked.
    pub fn normalize(raw: &str) -> Option<Self> {
        Self::new(text::trim(raw).to_lowercase())
    }
}

impl Version {
    /// Trims and lower-cases a text before it is checked.
    pub fn normalize(raw: &str) -> Option<Self> {
        Self::new(text::trim(raw).to_lowercase())
    }
}

impl AgentId {
    /// Collapses white space, lower-cases and joins words with `-` before the text is checked.
    pub fn normalize(raw: &str) -> Option<Self> {
        Self::new(text::collapse(raw).to_lowercase().replace(' ', "-"))
    }
}

impl TurnInstanceId {
    /// Trims a text before it is checked.
    pub fn normalize(raw: &str) -> Option<Self> {
        Self::new(text::trim(raw))
    }
}

fn is_goal_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 255
        && text != "."
        && text != ".."
        && !text.contains(['/', '\\'])
        && !text.chars().any(char::is_control)
}

fn is_agent_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 80
        && bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.:@-".contains(&byte)
        })
}

fn is_todo_id(text: &str) -> bool {
    text.strip_prefix("todo_").is_some_and(|rest| {
        (3..=64).contains(&rest.len())
            && rest.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte)
            })
    })
}

fn is_turn_instance_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 128
        && bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
}

fn is_replan_obligation_id(text: &str) -> bool {
    text.strip_prefix("replan-").is_some_and(|rest| {
        rest.len() == 16
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_id_is_one_path_segment() {
        assert!(GoalId::new("demo-goal").is_some());
        for text in ["", ".", "..", "a/b", "a\\b", "a\nb"] {
            assert!(GoalId::new(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn an_agent_id_is_normalized_before_it_is_checked() {
        let agent = AgentId::normalize("  Lane \t A ").expect("valid");
        assert_eq!(agent.as_str(), "lane-a");
        assert!(AgentId::normalize("1lane").is_none());
    }

    #[test]
    fn todo_turn_and_obligation_ids_have_their_exact_forms() {
        assert!(TodoId::new("todo_a2a97e2e1385").is_some() && TodoId::new("todo_a").is_none());
        assert!(TurnInstanceId::normalize(" turn-1 ").is_some());
        assert!(TurnInstanceId::new("-x").is_none());
        assert!(ReplanObligationId::new("replan-90740ca02eede1e1").is_some());
        assert!(ReplanObligationId::new("replan-XYZ").is_none());
    }
}
