//! An address of the web that may be named in a message or configured as a source.

/// The longest address that is taken, in bytes.
const MAX_BYTES: usize = 2000;

/// An `https` address with a host and without user information or white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress(String);

impl WebAddress {
    /// Takes a text that is one address.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("https://")?;
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        let is_plain = !host.is_empty()
            && !host.starts_with(':')
            && !host.contains('@')
            && text.len() <= MAX_BYTES
            && !text.contains(|c: char| {
                c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '\\')
            });
        is_plain.then(|| Self(text.to_owned()))
    }

    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_nothing_that_breaks_a_line() {
        assert!(WebAddress::parse("https://host.example:8443/a/pull/1?x=y#z").is_some());
        let bad = [
            "",
            "http://host.example/",
            "https://",
            "https:///a",
            "https://:1/",
            "https://me:pw@host.example/",
            "https://host.example/a b",
            "https://host.example/\n@Name",
            "https://host.example/<at>",
        ];
        for text in bad {
            assert_eq!(WebAddress::parse(text), None, "{text}");
        }
    }
}
