//! Identities at a chat provider. None of them prints, serialises or shows itself in a debug text: a packet that is public can
//! therefore not hold one. [`RouteKey`] alone is public by design: it is the operator's own name for a route.

use std::fmt;

use crate::contract::private::Private;

macro_rules! private_identity {
    ($(#[$doc:meta])* $name:ident, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Private<String>);

        impl $name {
            /// Takes a text that already has the exact form.
            pub fn new(text: impl Into<String>) -> Option<Self> {
                let text = text.into();
                let valid: fn(&str) -> bool = $valid;
                valid(&text).then(|| Self(Private::new(text)))
            }

            /// Returns the text, for calls and private rows alone.
            pub fn as_str(&self) -> &str {
                self.0.expose()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(out)
            }
        }
    };
}

private_identity!(
    /// A chat, `oc_…`.
    ChatId,
    |text| is_prefixed(text, "oc_")
);
private_identity!(
    /// A message, `om_…`.
    MessageId,
    |text| is_prefixed(text, "om_")
);
private_identity!(
    /// An application, `cli_…`.
    AppId,
    |text| is_prefixed(text, "cli_")
);
private_identity!(
    /// A person or bot inside one application, `ou_…`.
    OpenId,
    |text| is_prefixed(text, "ou_")
);
private_identity!(
    /// The name of a provider profile; never the default one.
    ProfileName,
    is_profile
);
private_identity!(
    /// The identity of an event: `[A-Za-z0-9:_-]{1,200}`.
    EventId,
    is_event_id
);
private_identity!(
    /// The identity of one mark on a message: `[A-Za-z0-9_-]{1,200}`.
    MarkId,
    |text| (1..=200).contains(&text.len()) && text.bytes().all(is_id_byte)
);

private_identity!(
    /// Whoever wrote a message, a person or a program: `[A-Za-z0-9_.:@-]{1,200}`.
    SenderId,
    |text| (1..=200).contains(&text.len())
        && text
            .bytes()
            .all(|byte| is_id_byte(byte) || matches!(byte, b'.' | b':' | b'@'))
);

private_identity!(
    /// A document, a card of its comments or a reply on one: safe inside a path, `[A-Za-z0-9_-]{1,200}`.
    DocumentId,
    |text| (1..=200).contains(&text.len()) && text.bytes().all(is_id_byte)
);

/// The operator's public name of one route: `[a-z0-9][a-z0-9._-]{0,79}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct RouteKey(String);

impl RouteKey {
    /// Takes a text that already has the exact form.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let mut bytes = text.bytes();
        let valid = text.len() <= 80
            && bytes
                .next()
                .is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && bytes.all(|byte| {
                byte.is_ascii_lowercase()
                    || byte.is_ascii_digit()
                    || matches!(byte, b'.' | b'_' | b'-')
            });
        valid.then_some(Self(text))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RouteKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A secret-free opaque text of a provider: a page token, a thread. Never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Opaque(Private<String>);

impl Opaque {
    /// Takes any text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Private::new(text.into()))
    }

    /// Returns the text, for calls and private files alone.
    pub fn as_str(&self) -> &str {
        self.0.expose()
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_prefixed(text: &str, prefix: &str) -> bool {
    text.len() <= 200
        && text
            .strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_id_byte))
}

fn is_profile(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text != "default"
        && !text.starts_with('-')
        && text.bytes().all(|byte| is_id_byte(byte) || byte == b'.')
}

fn is_event_id(text: &str) -> bool {
    (1..=200).contains(&text.len()) && text.bytes().all(|byte| is_id_byte(byte) || byte == b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_need_their_prefix_and_safe_characters() {
        assert!(ChatId::new("oc_a-1_B").is_some());
        for bad in ["oc_", "om_a", "oc_a b", "oc_ä", "oc_a/b", ""] {
            assert!(ChatId::new(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_default_profile_and_a_flag_are_no_profile_names() {
        assert!(ProfileName::new("project-bot.1").is_some());
        for bad in ["default", "-x", "", "a b"] {
            assert!(ProfileName::new(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn debug_text_of_an_identity_is_blank() {
        assert_eq!(format!("{:?}", MessageId::new("om_1")), "Some(<private>)");
    }

    #[test]
    fn route_keys_are_lower_case_names() {
        assert!(RouteKey::new("a.b-c_9").is_some());
        assert!(RouteKey::new("A").is_none() && RouteKey::new("-a").is_none());
        assert!(RouteKey::new("a".repeat(81)).is_none());
    }
}
