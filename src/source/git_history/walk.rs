//! What git printed, as commits, sizes and patches. Pure: bytes in, values out.
//!
//! Records are framed by NUL, which no message, name or path of git can hold. A record cut short by a
//! deadline is dropped; text that is not UTF-8 is replaced and said so.

use std::collections::HashMap;

use crate::contract::digest::{self, Digest};

/// The format of one walk record: id, parents, committer instant, decorations, message.
pub(super) const WALK_FORMAT: &str = "--format=%H%x00%P%x00%ct%x00%D%x00%B%x00";
/// The format that heads the sizes or the patch of one commit.
pub(super) const HEAD_FORMAT: &str = "--format=%x01%H";

/// One commit as the walk gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) parents: Vec<String>,
    /// Committer instant in seconds.
    pub(super) instant: i64,
    /// Tags that point here, without `refs/tags/`.
    pub(super) tags: Vec<TagName>,
    /// The history below was cut off here.
    pub(super) is_boundary: bool,
    pub(super) message: String,
    /// The message held bytes that are not UTF-8.
    pub(super) is_replaced: bool,
}

/// A tag's name; the raw form asks git for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TagName {
    pub(super) raw: Vec<u8>,
    pub(super) shown: String,
}

impl TagName {
    fn new(raw: &[u8]) -> Self {
        let shown = String::from_utf8_lossy(raw).into_owned();
        Self {
            raw: raw.to_vec(),
            shown,
        }
    }

    /// Tells whether the shown name differs from the raw one.
    pub(super) fn is_replaced(&self) -> bool {
        self.shown.as_bytes() != self.raw
    }
}

/// Reads every whole record of a walk.
pub(super) fn parse_walk(bytes: &[u8]) -> Vec<Commit> {
    let fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    // Five fields, then the record's own terminator as an empty sixth.
    fields.chunks_exact(6).filter_map(parse_record).collect()
}

fn parse_record(fields: &[&[u8]]) -> Option<Commit> {
    let text = |index: usize| std::str::from_utf8(fields[index]).ok();
    let (message, is_replaced) = lossy(fields[4]);
    let decorations = fields[3]
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii);
    let is_boundary = decorations.clone().any(|word| word == b"grafted");
    let tags = decorations
        .filter_map(|word| word.strip_prefix(b"tag: refs/tags/"))
        .map(TagName::new)
        .collect();
    let id = text(0).filter(|id| is_object_id(id))?;
    Some(Commit {
        id: id.to_owned(),
        parents: text(1)?
            .split_ascii_whitespace()
            .map(str::to_owned)
            .collect(),
        instant: text(2)?.parse().ok()?,
        tags,
        is_boundary,
        message,
        is_replaced,
    })
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn lossy(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), true),
    }
}

/// The lines one commit changed in one file; a binary file has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileChange {
    pub(super) path: String,
    pub(super) added: u64,
    pub(super) removed: u64,
}

/// Reads the sizes per commit.
pub(super) fn parse_sizes(bytes: &[u8]) -> HashMap<String, Vec<FileChange>> {
    let mut all: HashMap<String, Vec<FileChange>> = HashMap::new();
    let mut current: Option<String> = None;
    for token in bytes.split(|byte| *byte == 0) {
        if let Some(head) = token.strip_prefix(b"\x01") {
            let id = String::from_utf8_lossy(head).trim().to_owned();
            all.entry(id.clone()).or_default();
            current = Some(id);
            continue;
        }
        let change = parse_change(token.strip_prefix(b"\n").unwrap_or(token));
        if let (Some(id), Some(change)) = (&current, change) {
            all.entry(id.clone()).or_default().push(change);
        }
    }
    all
}

fn parse_change(token: &[u8]) -> Option<FileChange> {
    let mut parts = token.splitn(3, |byte| *byte == b'\t');
    let mut count = || -> Option<u64> {
        match std::str::from_utf8(parts.next()?).ok()? {
            "-" => Some(0),
            digits => digits.parse().ok(),
        }
    };
    let (added, removed) = (count()?, count()?);
    let path = String::from_utf8_lossy(parts.next()?).into_owned();
    Some(FileChange {
        path,
        added,
        removed,
    })
}

/// Reads patches and returns what each changes, whatever its place in the files.
pub(super) fn parse_patch_ids(bytes: &[u8]) -> HashMap<String, Digest> {
    let mut all = HashMap::new();
    // A head is a NUL, then the mark of HEAD_FORMAT; the patch runs to the next head.
    for part in split_heads(bytes) {
        let Some((head, patch)) = split_line(part) else {
            continue;
        };
        let id = String::from_utf8_lossy(head).trim().to_owned();
        if is_object_id(&id) {
            all.insert(id, patch_id(patch));
        }
    }
    all
}

fn split_heads(bytes: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<usize> = Vec::new();
    for (at, window) in bytes.windows(2).enumerate() {
        let begins = at == 0 || bytes[at - 1] == b'\n';
        if begins && window == b"\x00\x01" {
            starts.push(at);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &bytes[start + 2..end])
        .collect()
}

fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// Digest over the changed lines without white space and line numbers; of binary files, their object ids.
fn patch_id(patch: &[u8]) -> Digest {
    let mut kept = Vec::with_capacity(patch.len());
    let mut index: &[u8] = b"";
    for line in patch.split(|byte| *byte == b'\n') {
        if line.starts_with(b"index ") {
            index = line;
            continue;
        }
        if line.starts_with(b"@@") {
            kept.extend_from_slice(b"@@");
            continue;
        }
        if line.starts_with(b"Binary files ") {
            kept.extend_from_slice(index);
        }
        kept.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
    }
    digest::content_digest(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: &str = "a775a3f4136a35401620a7eece74b50c919211de";
    const B: &str = "e270a92987b2e0e4949134aa4279fdceb42e7d0f";

    #[test]
    fn whole_records_are_read_and_a_cut_one_is_dropped() {
        let text = format!(
            "{A}\0{B}\x001796058271\0grafted, tag: refs/tags/v2, tag: refs/tags/v1\0fix: two\n\nbody\n\0\0{B}\0\x001\0\0half"
        );
        let commits = parse_walk(text.as_bytes());
        assert_eq!(commits.len(), 1);
        let tags: Vec<&str> = commits[0]
            .tags
            .iter()
            .map(|tag| tag.shown.as_str())
            .collect();
        assert_eq!((commits[0].is_boundary, tags), (true, vec!["v2", "v1"]));
        assert_eq!(commits[0].parents, [B]);
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_and_said_so() {
        let mut bytes = format!("{A}\0\x001\0\0caf").into_bytes();
        bytes.extend_from_slice(b"\xe9\0\0");
        let commits = parse_walk(&bytes);
        assert!(commits[0].is_replaced && commits[0].message.contains('\u{fffd}'));
    }

    #[test]
    fn sizes_are_read_per_commit_with_odd_names_and_binary_files() {
        let text = format!("\x01{A}\0\n1\t0\tb\tc\0-\t-\ts/a.png\0\x01{B}\0\x01{A}x\0\n3\t2\tz\0");
        let sizes = parse_sizes(text.as_bytes());
        assert_eq!(sizes[A].len(), 2);
        assert_eq!(sizes[A][0].path, "b\tc");
        assert_eq!((sizes[A][1].added, sizes[A][1].removed), (0, 0));
        assert!(sizes[B].is_empty());
    }

    #[test]
    fn a_patch_is_the_same_wherever_it_stands() {
        let patch =
            |at: &str| format!("diff --git a/f b/f\nindex 1..2 100644\n@@ {at} @@ fn\n+one\n");
        let text = format!(
            "\0\x01{A}\n\n{}\0\x01{B}\n\n{}",
            patch("-1 +1"),
            patch("-9 +9,2")
        );
        let ids = parse_patch_ids(text.as_bytes());
        assert_eq!(ids[A], ids[B]);
    }

    proptest! {
        #[test]
        fn any_output_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (parse_walk(&bytes), parse_sizes(&bytes), parse_patch_ids(&bytes));
        }
    }
}
