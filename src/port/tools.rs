//! The programs of the machine that loopx calls.

/// Another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Reads repositories for reports.
    Git,
    /// Speaks to the collaboration channel.
    Channel,
}

/// What was found of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is there and new enough.
    Version(String),
    /// It is there and too old; the least version that works is named.
    TooOld {
        /// Its version.
        version: String,
        /// The least that works.
        least: String,
    },
    /// It is not there, or does not say its version.
    Missing,
}

/// Looks for programs.
pub trait Tools {
    /// Asks one program for its version.
    fn find(&self, tool: Tool) -> Found;
}

impl Found {
    /// Compares a version with the least that works.
    pub fn judge(version: Option<[u64; 3]>, least: (&str, [u64; 3])) -> Self {
        let Some(found) = version else {
            return Self::Missing;
        };
        let version = found.map(|part| part.to_string()).join(".");
        match found >= least.1 {
            true => Self::Version(version),
            false => Self::TooOld {
                version,
                least: least.0.to_owned(),
            },
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
        let found = Found::judge(Some([1, 0, 9]), ("1.0.69", [1, 0, 69]));
        assert_eq!(
            found,
            Found::TooOld {
                version: "1.0.9".to_owned(),
                least: "1.0.69".to_owned()
            }
        );
    }
}
