//! The programs of the machine that loopx calls.

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
}
