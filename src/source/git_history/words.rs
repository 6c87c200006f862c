//! The fixed words of the items, in the report's language.

/// The language of the labels; facts stay as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

/// Commits, files and lines of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Size {
    pub(super) commits: usize,
    /// Files and lines could be read.
    pub(super) is_known: bool,
    pub(super) files: usize,
    pub(super) added: u64,
    pub(super) removed: u64,
}

impl Size {
    pub(super) fn lines(self) -> u64 {
        self.added.saturating_add(self.removed)
    }
}

impl Language {
    /// Takes a language tag.
    pub(crate) fn of(tag: &str) -> Self {
        match crate::contract::text::is_chinese(tag) {
            true => Self::Chinese,
            false => Self::English,
        }
    }

    pub(super) const fn tag(self) -> &'static str {
        self.choose("en", "zh-CN")
    }

    const fn choose(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }

    pub(super) const fn scope(self) -> &'static str {
        self.choose("Scope", "范围")
    }

    pub(super) const fn request(self) -> &'static str {
        self.choose("Pull request", "合并请求")
    }

    pub(super) const fn size(self) -> &'static str {
        self.choose("Size", "规模")
    }

    pub(super) const fn commits(self) -> &'static str {
        self.choose("Commits", "提交")
    }

    pub(super) const fn reverted(self) -> &'static str {
        self.choose("reverted", "已回退")
    }

    pub(super) fn withheld(self, id: &str) -> String {
        match self {
            Self::English => format!("{id}: message withheld"),
            Self::Chinese => format!("{id}：提交说明已隐去"),
        }
    }

    pub(super) fn untitled(self, id: &str) -> String {
        match self {
            Self::English => format!("{id}: no message"),
            Self::Chinese => format!("{id}：没有提交说明"),
        }
    }

    pub(super) fn commit_count(self, count: usize) -> String {
        match self {
            Self::English => format!("{count} {}", plural(count, "commit", "commits")),
            Self::Chinese => format!("{count} 次提交"),
        }
    }

    pub(super) fn extent(self, size: Size) -> String {
        let Size {
            files,
            added,
            removed,
            ..
        } = size;
        if !size.is_known {
            return self.choose("not known", "未知").to_owned();
        }
        match self {
            Self::English => {
                format!(
                    "{files} {}, +{added} −{removed}",
                    plural(files, "file", "files")
                )
            }
            Self::Chinese => format!("{files} 个文件，+{added} −{removed}"),
        }
    }

    pub(super) fn numbers(self, size: Size) -> String {
        if !size.is_known {
            return self.commit_count(size.commits);
        }
        let separator = self.choose(", ", "，");
        format!(
            "{}{separator}{}",
            self.commit_count(size.commits),
            self.extent(size)
        )
    }
}

const fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    match count {
        1 => one,
        _ => many,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_in_both_languages_with_a_minus_sign() {
        let size = Size {
            commits: 1,
            is_known: true,
            files: 2,
            added: 37,
            removed: 3,
        };
        assert_eq!(
            Language::English.numbers(size),
            "1 commit, 2 files, +37 \u{2212}3"
        );
        assert_eq!(
            Language::Chinese.numbers(size),
            "1 次提交，2 个文件，+37 −3"
        );
    }
}
