//! What ties a command that is handed out to this state, and how it is written for a shell.

/// The two global arguments that tie a command to this state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The registry file.
    pub registry: String,
    /// The runtime root.
    pub runtime_root: String,
}

impl Places {
    /// A command of this program bound to this state.
    pub fn argv(&self, rest: &[&str]) -> Vec<String> {
        let mut argv: Vec<String> = [
            "loopx",
            "--registry",
            &self.registry,
            "--runtime-root",
            &self.runtime_root,
        ]
        .map(str::to_owned)
        .to_vec();
        argv.extend(rest.iter().map(|word| (*word).to_owned()));
        argv
    }
}

/// One line a shell reads back as the same words.
pub fn shell_line(argv: &[String]) -> String {
    let quote = |word: &String| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@%+=:,./-_".contains(&byte);
        if !word.is_empty() && word.bytes().all(is_plain) {
            return word.clone();
        }
        format!("'{}'", word.replace('\'', "'\"'\"'"))
    };
    argv.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_line_quotes_what_a_shell_would_change() {
        let argv = ["loopx", "a b", "it's", "", "plain/x"].map(str::to_owned);
        assert_eq!(shell_line(&argv), r#"loopx 'a b' 'it'"'"'s' '' plain/x"#);
    }
}
