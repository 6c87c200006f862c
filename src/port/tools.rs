//! The programs of the machine that loopx calls.

use std::fmt;

/// Another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Reads repositories for reports.
    Git,
    /// Speaks to the collaboration channel.
    Channel,
}

/// The program a tool is, and the least version of it that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Its name on the search path.
    pub program: &'static str,
    /// The least version, as it is written.
    pub least: &'static str,
    /// The same, as it is compared.
    pub number: [u64; 3],
}

/// What was found of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is there and new enough.
    Version(String),
    /// It is there and too old.
    TooOld {
        /// Its version.
        version: String,
        /// What would do.
        need: Need,
    },
    /// It is not there, or does not say its version.
    Missing(Need),
}

/// A program that is there and cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooOld {
    /// Its version; none when it names none.
    pub version: Option<String>,
    /// What would do.
    pub need: Need,
}

impl TooOld {
    /// Judges what a program says about itself; none when it is new enough.
    pub fn judge(said: &[u8], need: Need) -> Option<Self> {
        match Found::judge(dotted_version(said), need) {
            Found::Version(_) => None,
            Found::TooOld { version, need } => Some(Self {
                version: Some(version),
                need,
            }),
            Found::Missing(need) => Some(Self {
                version: None,
                need,
            }),
        }
    }
}

impl fmt::Display for TooOld {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Need { program, least, .. } = self.need;
        match &self.version {
            Some(version) => write!(out, "`{program}` {version} is too old; ")?,
            None => write!(out, "`{program}` does not say its version; ")?,
        }
        write!(
            out,
            "install {least} or newer, then run the same command again"
        )
    }
}

impl std::error::Error for TooOld {}

/// Says of a program that failed as an old one does whether it is one.
pub trait ProgramAge {
    /// What it lacks. It is asked only when it failed like that and nothing was written before, and once.
    fn outdated(&self) -> Option<TooOld>;
}

/// Looks for programs.
pub trait Tools {
    /// Asks one program for its version.
    fn find(&self, tool: Tool) -> Found;
}

impl Found {
    /// Compares a version with the least that works.
    pub fn judge(version: Option<[u64; 3]>, need: Need) -> Self {
        let Some(found) = version else {
            return Self::Missing(need);
        };
        let version = found.map(|part| part.to_string()).join(".");
        match found >= need.number {
            true => Self::Version(version),
            false => Self::TooOld { version, need },
        }
    }
}

/// Reads the first dotted number of what a program says about itself; a leading `v` and a suffix are ignored.
pub fn dotted_version(said: &[u8]) -> Option<[u64; 3]> {
    let text = String::from_utf8_lossy(said);
    text.split_whitespace().find_map(|word| {
        let word = word.strip_prefix('v').unwrap_or(word);
        let mut parts = word.split('.').map(|part| {
            let end = part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len());
            part[..end].parse::<u64>().ok()
        });
        let major = parts.next()??;
        let minor = parts.next()??;
        let patch = parts.next().flatten().unwrap_or(0);
        Some([major, minor, patch])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_with_prefix_and_suffix_and_compared_by_number() {
        assert_eq!(
            dotted_version(b"git version 2.39.5 (Apple)"),
            Some([2, 39, 5])
        );
        assert_eq!(dotted_version(b"lark-cli v1.0.100-beta"), Some([1, 0, 100]));
        assert_eq!(dotted_version(b"2.31\n"), Some([2, 31, 0]));
        assert_eq!(dotted_version(b"no number"), None);
        let need = Need {
            program: "p",
            least: "1.0.69",
            number: [1, 0, 69],
        };
        let version = "1.0.9".to_owned();
        assert_eq!(
            Found::judge(Some([1, 0, 9]), need),
            Found::TooOld { version, need }
        );
        assert_eq!(Found::judge(None, need), Found::Missing(need));
    }

    #[test]
    fn a_program_that_names_no_version_is_refused_like_an_old_one() {
        let need = Need {
            program: "p",
            least: "1.2.0",
            number: [1, 2, 0],
        };
        assert_eq!(TooOld::judge(b"p version 1.2.0", need), None);
        let said = |text: &[u8]| TooOld::judge(text, need).map(|old| old.to_string());
        assert_eq!(
            said(b"p version 1.1.9").as_deref(),
            Some("`p` 1.1.9 is too old; install 1.2.0 or newer, then run the same command again")
        );
        assert!(said(b"p version dev").is_some_and(|text| text.contains("does not say")));
    }
}
