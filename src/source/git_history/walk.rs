//! What git printed, as commits, sizes and patches. Pure: bytes in, values out.
//!
//! Records are framed by NUL, which no message, name or path of git can hold. A record cut short by a
//! deadline is dropped; text that is not UTF-8 is replaced and said so.

use std::collections::HashMap;

use crate::contract::digest::{self, Digest};

/// The format of one walk record: id, parents, committer instant, decorations, message.
pub(super) const WALK_FORMAT: &str = "--format=%H%x00%P%x00%ct%x00%D%x00%B%x00";
const WALK_FIELDS: usize = 5;

/// One commit as the walk gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) parents: Vec<String>,
    /// Committer instant in seconds.
    pub(super) instant: i64,
    /// Tags that point here, without `refs/tags/`.
    pub(super) tags: Vec<TagName>,
    /// Git shows no parents and says that it may hide some; the object itself knows.
    pub(super) may_be_boundary: bool,
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
    pub(super) fn new(raw: &[u8]) -> Self {
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

/// The whole records of a walk, and whether there was nothing else.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) commits: Vec<Commit>,
    pub(super) is_whole: bool,
}

/// Reads the records of a walk: five fields, each ended by NUL, and a line end.
pub(super) fn parse_walk(bytes: &[u8]) -> Walk {
    let fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    let (records, rest) = fields.as_chunks::<WALK_FIELDS>();
    // A record whose last field ends with the bytes lacks its NUL: it was cut.
    let records = match rest {
        [] => records.split_last().map_or(records, |(_, whole)| whole),
        _ => records,
    };
    let parsed = records.iter().map(parse_record);
    let mut commits = Vec::with_capacity(records.len());
    for record in parsed {
        match record {
            Some(commit) => commits.push(commit),
            None => {
                let is_whole = false;
                return Walk { commits, is_whole };
            }
        }
    }
    let is_whole = matches!(rest, [b"" | b"\n"]);
    Walk { commits, is_whole }
}

fn parse_record(fields: &[&[u8]; WALK_FIELDS]) -> Option<Commit> {
    let [id, parents, instant, decorations, message] = fields;
    let id = std::str::from_utf8(id.strip_prefix(b"\n").unwrap_or(id)).ok()?;
    let parents = std::str::from_utf8(parents).ok()?;
    let parents: Vec<String> = parents
        .split_ascii_whitespace()
        .map(str::to_owned)
        .collect();
    let decorations = split_decorations(decorations);
    let (message, is_replaced) = lossy(message);
    is_object_id(id).then_some(())?;
    Some(Commit {
        id: id.to_owned(),
        may_be_boundary: parents.is_empty() && decorations.contains(&b"grafted".as_slice()),
        parents,
        instant: std::str::from_utf8(instant).ok()?.parse().ok()?,
        tags: decorations
            .into_iter()
            .filter_map(|word| word.strip_prefix(b"tag: "))
            .map(TagName::new)
            .collect(),
        message,
        is_replaced,
    })
}

/// Names are separated by a comma and a space: a name may hold a comma, but no space.
fn split_decorations(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some(at) = bytes.windows(2).position(|pair| pair == b", ") {
        all.push(&bytes[..at]);
        bytes = &bytes[at + 2..];
    }
    all.push(bytes);
    all
}

pub(super) fn is_object_id(text: &str) -> bool {
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

/// Reads the sizes per commit. The last commit of an answer that was cut is left out: it may lack files.
pub(super) fn parse_sizes(bytes: &[u8], is_cut: bool) -> HashMap<String, Vec<FileChange>> {
    let mut all: HashMap<String, Vec<FileChange>> = HashMap::new();
    let mut current: Option<String> = None;
    for token in bytes.split(|byte| *byte == 0) {
        match std::str::from_utf8(token) {
            Ok(id) if is_object_id(id) => {
                all.entry(id.to_owned()).or_default();
                current = Some(id.to_owned());
            }
            _ => {
                if let (Some(id), Some(change)) = (&current, parse_change(token)) {
                    all.entry(id.clone()).or_default().push(change);
                }
            }
        }
    }
    if let Some(last) = current.filter(|_| is_cut) {
        all.remove(&last);
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

/// Reads patches and returns what each changes, whatever its place in the files. Every line of a patch starts
/// with a word or a mark, so a line that is an object id alone starts the next one.
pub(super) fn parse_patch_ids(bytes: &[u8]) -> HashMap<String, Digest> {
    let mut all = HashMap::new();
    let mut current: Option<(String, Vec<&[u8]>)> = None;
    for line in bytes.split(|byte| *byte == b'\n') {
        match std::str::from_utf8(line) {
            Ok(id) if is_object_id(id) => {
                let done = current.replace((id.to_owned(), Vec::new()));
                all.extend(done.map(|(id, lines)| (id, patch_id(&lines))));
            }
            _ => {
                if let Some((_, lines)) = &mut current {
                    lines.push(line);
                }
            }
        }
    }
    all.extend(current.map(|(id, lines)| (id, patch_id(&lines))));
    all
}

/// Digest over the changed lines without white space and line numbers; of binary files, their object ids.
fn patch_id(lines: &[&[u8]]) -> Digest {
    let mut kept = Vec::new();
    let mut index: &[u8] = b"";
    for &line in lines {
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

    fn shown(commit: &Commit) -> Vec<&str> {
        commit.tags.iter().map(|tag| tag.shown.as_str()).collect()
    }

    #[test]
    fn whole_records_are_read_and_a_cut_one_is_dropped() {
        let whole =
            format!("{A}\0{B}\x001796058271\0tag: v2, main, tag: v1\0fix: two\n\nbody\n\0\n");
        let walk = parse_walk(whole.as_bytes());
        assert!(walk.is_whole && walk.commits.len() == 1);
        assert_eq!(shown(&walk.commits[0]), ["v2", "v1"]);
        assert_eq!(walk.commits[0].parents, [B]);
        let cut = parse_walk(format!("{whole}{B}\0\x001\0\0half").as_bytes());
        assert!(!cut.is_whole && cut.commits.len() == 1);
        assert!(!parse_walk(b"garbage\n").is_whole);
        assert!(parse_walk(b"").is_whole);
    }

    #[test]
    fn a_comma_belongs_to_a_tag_name_and_forges_nothing() {
        let text = format!("{A}\0{B}\x001\0tag: v1,grafted, tag: v2,b, grafted\0x\0\n");
        let walk = parse_walk(text.as_bytes());
        assert_eq!(shown(&walk.commits[0]), ["v1,grafted", "v2,b"]);
        assert!(!walk.commits[0].may_be_boundary, "it has parents");
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_and_said_so() {
        let mut bytes = format!("{A}\0\x001\0\0caf").into_bytes();
        bytes.extend_from_slice(b"\xe9\0\n");
        let walk = parse_walk(&bytes);
        assert!(walk.commits[0].is_replaced && walk.commits[0].message.contains('\u{fffd}'));
    }

    #[test]
    fn sizes_are_read_per_commit_with_odd_names_and_binary_files() {
        let text = format!("{A}\x001\t0\tb\tc\0-\t-\ts/a.png\0{B}\0");
        let sizes = parse_sizes(text.as_bytes(), false);
        assert_eq!(sizes[A].len(), 2);
        assert_eq!(sizes[A][0].path, "b\tc");
        assert_eq!((sizes[A][1].added, sizes[A][1].removed), (0, 0));
        assert!(sizes[B].is_empty());
        assert!(!parse_sizes(text.as_bytes(), true).contains_key(B));
    }

    #[test]
    fn a_patch_is_the_same_wherever_it_stands() {
        let patch =
            |at: &str| format!("diff --git a/f b/f\nindex 1..2 100644\n@@ {at} @@ fn\n+one\n");
        let text = format!("{A}\n{}{B}\n{}", patch("-1 +1"), patch("-9 +9,2"));
        let ids = parse_patch_ids(text.as_bytes());
        assert_eq!(ids[A], ids[B]);
    }

    proptest! {
        #[test]
        fn any_output_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (parse_walk(&bytes), parse_sizes(&bytes, true), parse_patch_ids(&bytes));
        }
    }
}
