//! Tags as facts: what a release says of itself.

use super::select::{Fact, Identity};
use super::walk::{Commit, TagName};
use crate::contract::periodic_report::vocabulary::ContentKind;
use crate::contract::text;

/// Makes the fact of a tag on a commit; `message` is an annotated tag's own.
pub(super) fn tag_fact(at: (&Commit, usize), name: &TagName, message: Option<&str>) -> Fact {
    let (commit, place) = at;
    let subject = super::message::Message::parse(&commit.message).subject;
    let own = message.and_then(first_paragraph);
    Fact {
        identity: Identity::Tag(name.clone()),
        commit: commit.id.clone(),
        instant: commit.instant,
        place,
        kind: ContentKind::Outcome,
        is_primary: true,
        written: name.shown.clone(),
        title: name.shown.clone(),
        summary: Some(own.unwrap_or(subject.written)).filter(|text| !text.is_empty()),
        is_reverted: false,
        request: None,
        scope: None,
        brought: Vec::new(),
        files: Some(Vec::new()),
        may_group: false,
    }
}

/// The first paragraph of a message, without the signature behind it.
fn first_paragraph(message: &str) -> Option<String> {
    let unsigned = message.split("-----BEGIN ").next().unwrap_or("");
    let mut lines = unsigned
        .lines()
        .map(text::trim)
        .skip_while(|line| line.is_empty());
    let paragraph: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    Some(text::collapse(&paragraph.join(" "))).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_tells_its_own_message_or_its_commit() {
        let commit = Commit {
            id: "a".repeat(40),
            parents: Vec::new(),
            instant: 5,
            tags: Vec::new(),
            may_be_boundary: false,
            message: "fix: mend".to_owned(),
            is_replaced: false,
        };
        let name = TagName::new(b"v1");
        let light = tag_fact((&commit, 0), &name, None);
        assert_eq!(light.summary.as_deref(), Some("fix: mend"));
        let signed = tag_fact(
            (&commit, 0),
            &name,
            Some("The\nrelease\n\nmore\n-----BEGIN PGP SIGNATURE-----\nx"),
        );
        assert_eq!(signed.summary.as_deref(), Some("The release"));
    }
}
