//! The answer of `git cat-file --batch`: tag messages, and the parents a commit was written with.
//!
//! The parents in an object are those of its author; a shallow boundary hides them from every other view.

/// One object that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Object {
    /// An annotated tag with its message.
    Tag(String),
    /// A commit, and whether it was written with parents.
    Commit { has_parents: bool },
    /// Anything else, or nothing.
    Other,
}

/// Reads the objects in the order asked for; what is cut off is [`Object::Other`].
pub(super) fn parse_objects(bytes: &[u8], count: usize) -> Vec<Object> {
    let mut rest = bytes;
    let mut all = Vec::new();
    while all.len() < count {
        let Some((object, after)) = next_object(rest) else {
            break;
        };
        all.push(object);
        rest = after;
    }
    all.resize(count, Object::Other);
    all
}

fn next_object(bytes: &[u8]) -> Option<(Object, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let after = &bytes[end + 1..];
    let words: Vec<&str> = head.split(' ').collect();
    let [_, kind, size] = words.as_slice() else {
        // `refs/tags/x missing`: there is no body.
        return Some((Object::Other, after));
    };
    let Ok(size) = size.parse::<usize>() else {
        return Some((Object::Other, after));
    };
    let body = after.get(..size)?;
    let rest = after.get(size + 1..).unwrap_or(&[]);
    Some((object(kind, body), rest))
}

fn object(kind: &str, body: &[u8]) -> Object {
    let text = String::from_utf8_lossy(body);
    let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    match kind {
        "tag" => Object::Tag(message.to_owned()),
        "commit" => Object::Commit {
            has_parents: head.lines().any(|line| line.starts_with("parent ")),
        },
        _ => Object::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_in_order_and_missing_ones_have_no_body() {
        let tag = "object x\ntype commit\ntag v1\ntagger A <a@b> 1 +0000\n\nThe release\n";
        let commit = "tree x\nparent y\nauthor z\n\nparent of all\n";
        let text = format!(
            "aa tag {}\n{tag}\nrefs/tags/gone missing\nbb commit {}\n{commit}\n",
            tag.len(),
            commit.len()
        );
        let found = parse_objects(text.as_bytes(), 3);
        let told = Object::Tag("The release\n".to_owned());
        assert_eq!(
            found,
            [told, Object::Other, Object::Commit { has_parents: true }]
        );
    }

    #[test]
    fn a_root_commit_has_no_parents_whatever_its_message_says() {
        let commit = "tree x\nauthor z\n\nparent of all\n";
        let text = format!("bb commit {}\n{commit}\n", commit.len());
        let found = parse_objects(text.as_bytes(), 1);
        assert_eq!(found, [Object::Commit { has_parents: false }]);
    }

    #[test]
    fn a_cut_answer_gives_what_is_whole() {
        assert_eq!(
            parse_objects(b"aa tag 500\nhalf", 2),
            [Object::Other, Object::Other]
        );
    }
}
