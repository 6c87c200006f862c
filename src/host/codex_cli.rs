//! The codex host: its program reads one request on standard input and prints one result.

/// How a codex host is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodexCli<'a> {
    /// The program.
    pub(crate) program: &'a str,
    /// The model; the program's own when it is not named.
    pub(crate) model: Option<&'a str>,
    /// The sandbox; the program's own when it is not named.
    pub(crate) sandbox: Option<&'a str>,
}

impl CodexCli<'_> {
    /// Returns its words; the last one says that the request comes on standard input.
    pub(crate) fn argv(&self) -> Vec<String> {
        let mut argv = vec![self.program.to_owned(), "exec".to_owned()];
        for (flag, value) in [("--model", self.model), ("--sandbox", self.sandbox)] {
            if let Some(value) = value {
                argv.extend([flag.to_owned(), value.to_owned()]);
            }
        }
        argv.push("-".to_owned());
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::CodexCli;

    #[test]
    fn what_is_not_named_is_left_to_the_program() {
        let host = CodexCli {
            program: "codex",
            model: None,
            sandbox: None,
        };
        assert_eq!(host.argv(), ["codex", "exec", "-"]);
    }
}
