//! A commit message as structure: Conventional Commits grammar and the forms hosting services write.
//!
//! Nothing is guessed from prose. White space is collapsed; what a message says otherwise stays as written.

use crate::contract::text::{collapse, trim};

/// What the conventional type of a subject says about the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeType {
    Feature,
    Revert,
    /// `fix` and `perf`.
    Repair,
    /// `docs chore ci build test style refactor`.
    Upkeep,
}

const TYPES: [(&str, ChangeType); 11] = [
    ("feat", ChangeType::Feature),
    ("revert", ChangeType::Revert),
    ("fix", ChangeType::Repair),
    ("perf", ChangeType::Repair),
    ("docs", ChangeType::Upkeep),
    ("chore", ChangeType::Upkeep),
    ("ci", ChangeType::Upkeep),
    ("build", ChangeType::Upkeep),
    ("test", ChangeType::Upkeep),
    ("style", ChangeType::Upkeep),
    ("refactor", ChangeType::Upkeep),
];

/// One subject line, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Subject {
    /// The line as written.
    pub(super) written: String,
    /// Without a known type prefix and a trailing request number.
    pub(super) title: String,
    /// The conventional type, when it is one of the table.
    pub(super) change: Option<ChangeType>,
    /// The scope in parentheses.
    pub(super) scope: Option<String>,
    /// A `!` before the colon.
    pub(super) is_breaking: bool,
    /// The trailing `(#N)`, as `#N`.
    pub(super) request: Option<String>,
}

/// A merge that a hosting service made of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergedRequest {
    /// `#N` or `!N`.
    pub(super) number: String,
    /// The first telling line of the body, as a subject of its own.
    pub(super) subject: Subject,
    /// The paragraph after it.
    pub(super) summary: Option<String>,
}

/// A whole message, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) subject: Subject,
    /// The first body paragraph that is more than trailers.
    pub(super) summary: Option<String>,
    pub(super) has_breaking_footer: bool,
    /// Whether git's or the convention's form says that this takes something back.
    pub(super) is_revert: bool,
    /// The commit of `This reverts commit <id>`.
    pub(super) reverts: Option<String>,
}

impl Message {
    pub(super) fn parse(raw: &str) -> Self {
        let paragraphs = paragraphs(raw);
        let subject = Subject::parse(&subject_line(paragraphs.first().map_or(&[], Vec::as_slice)));
        let body = paragraphs.get(1..).unwrap_or(&[]);
        let lines = || body.iter().flatten().copied();
        let is_git_revert = subject.written.starts_with("Revert \"");
        Self {
            summary: first_prose(body).or_else(|| breaking_words(body)),
            has_breaking_footer: lines().any(is_breaking_footer),
            is_revert: is_git_revert || subject.change == Some(ChangeType::Revert),
            reverts: lines().find_map(reverted_id),
            subject,
        }
    }

    /// Tells whether the change breaks what was there.
    pub(super) fn is_breaking(&self) -> bool {
        self.subject.is_breaking || self.has_breaking_footer
    }
}

impl MergedRequest {
    /// Reads a merge commit's message in the form of one of the hosting services.
    pub(super) fn parse(raw: &str) -> Option<Self> {
        let lines: Vec<&str> = raw.lines().map(trim).collect();
        let start = lines.iter().position(|line| !line.is_empty())?;
        let (first, body) = (lines[start], &lines[start + 1..]);
        let number = github_number(first).or_else(|| gitlab_number(first, body))?;
        let telling = |line: &&str| !line.is_empty() && !is_trailer(line) && !is_request_line(line);
        let at = body.iter().position(telling)?;
        let rest = body[at + 1..].join("\n");
        Some(Self {
            number,
            subject: Subject::parse(&collapse(body[at])),
            summary: first_prose(&paragraphs(&rest)).or_else(|| breaking_words(&paragraphs(&rest))),
        })
    }
}

fn github_number(first: &str) -> Option<String> {
    let rest = first.strip_prefix("Merge pull request #")?;
    let (number, _) = rest.split_once(" from ")?;
    is_number(number).then(|| format!("#{number}"))
}

fn gitlab_number(first: &str, body: &[&str]) -> Option<String> {
    let is_merge = first.starts_with("Merge branch ") && first.contains(" into ");
    let line = body.iter().find(|line| is_request_line(line))?;
    let (_, number) = line.rsplit_once('!')?;
    (is_merge && is_number(number)).then(|| format!("!{number}"))
}

fn is_request_line(line: &str) -> bool {
    line.strip_prefix("See merge request ").is_some_and(|rest| {
        rest.rsplit_once('!')
            .is_some_and(|(_, number)| is_number(number))
    })
}

fn is_number(text: &str) -> bool {
    (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Subject {
    pub(super) fn parse(line: &str) -> Self {
        let mut subject = Self {
            written: line.to_owned(),
            ..Self::default()
        };
        let mut rest = line;
        if let Some((kind, scope, is_breaking, after)) = conventional(line) {
            subject.change = TYPES
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(kind))
                .map(|(_, change)| *change);
            subject.is_breaking = is_breaking;
            if subject.change.is_some() {
                rest = after;
            }
            subject.scope = scope.map(collapse).filter(|scope| !scope.is_empty());
        }
        let (title, request) = without_request(rest);
        subject.request = request;
        subject.title = match title.is_empty() {
            true => line.to_owned(),
            false => title.to_owned(),
        };
        subject
    }
}

/// Splits `type(scope)!: text`.
fn conventional(line: &str) -> Option<(&str, Option<&str>, bool, &str)> {
    let (head, after) = line.split_once(": ")?;
    let (head, is_breaking) = match head.strip_suffix('!') {
        Some(head) => (head, true),
        None => (head, false),
    };
    let (kind, scope) = match head.split_once('(') {
        Some((kind, scope)) => (kind, Some(scope.strip_suffix(')')?)),
        None => (head, None),
    };
    let is_noun = !kind.is_empty()
        && kind
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_noun && !after.is_empty()).then_some((kind, scope, is_breaking, trim(after)))
}

fn without_request(text: &str) -> (&str, Option<String>) {
    let found = text
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once("(#"));
    match found {
        Some((title, number)) if is_number(number) => (trim(title), Some(format!("#{number}"))),
        _ => (text, None),
    }
}

/// Groups the lines of a text by the empty lines between them.
fn paragraphs(raw: &str) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = Vec::new();
    let mut is_open = false;
    for line in raw.lines().map(trim) {
        match (line.is_empty(), is_open) {
            (true, _) => is_open = false,
            (false, true) => all.last_mut().into_iter().for_each(|last| last.push(line)),
            (false, false) => {
                all.push(vec![line]);
                is_open = true;
            }
        }
    }
    all
}

/// The subject is the first paragraph; trailers that follow without an empty line are not part of it.
fn subject_line(lines: &[&str]) -> String {
    let mut rest = lines.iter().enumerate();
    let kept: Vec<&str> = rest
        .by_ref()
        .filter(|(index, line)| *index == 0 || !is_trailer(line))
        .map(|(_, line)| *line)
        .collect();
    collapse(&kept.join(" "))
}

fn first_prose(paragraphs: &[Vec<&str>]) -> Option<String> {
    paragraphs.iter().find_map(|lines| {
        let kept: Vec<&str> = lines
            .iter()
            .copied()
            .take_while(|line| !is_breaking_footer(line))
            .filter(|line| !is_trailer(line) && !is_request_line(line))
            .collect();
        let text = collapse(&kept.join(" "));
        (!text.is_empty()).then_some(text)
    })
}

/// What a breaking footer says; it runs on to the next trailer or empty line.
fn breaking_words(paragraphs: &[Vec<&str>]) -> Option<String> {
    let lines = paragraphs.iter().find_map(|lines| {
        let at = lines.iter().position(|line| is_breaking_footer(line))?;
        Some(&lines[at..])
    })?;
    let (first, rest) = lines.split_first()?;
    let words = first.get("BREAKING CHANGE".len()..)?;
    let words = words.trim_start_matches([':', ' ', '#']);
    let more = rest.iter().copied().take_while(|line| !is_trailer(line));
    let all: Vec<&str> = std::iter::once(words).chain(more).collect();
    Some(collapse(&all.join(" "))).filter(|text| !text.is_empty())
}

fn is_breaking_footer(line: &str) -> bool {
    [
        "BREAKING CHANGE: ",
        "BREAKING-CHANGE: ",
        "BREAKING CHANGE #",
        "BREAKING-CHANGE #",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// A trailer of a name with a dash (`Signed-off-by`), or one of the usual single words.
fn is_trailer(line: &str) -> bool {
    const WORDS: [&str; 10] = [
        "cc",
        "link",
        "fixes",
        "closes",
        "resolves",
        "refs",
        "bug",
        "see",
        "issue",
        "reviewers",
    ];
    let Some((name, value)) = line.split_once(':') else {
        return false;
    };
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && value.starts_with(' ');
    is_name && (name.contains('-') || WORDS.contains(&name.to_ascii_lowercase().as_str()))
}

fn reverted_id(line: &str) -> Option<String> {
    let rest = line.strip_prefix("This reverts commit ")?;
    let id: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    (7..=64)
        .contains(&id.len())
        .then(|| id.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn subject(line: &str) -> Subject {
        Subject::parse(line)
    }

    #[test]
    fn known_types_leave_the_title_and_others_stay() {
        let cases = [
            ("feat(api): add the walrus", "add the walrus"),
            ("fix: mend the Walrus (#12)", "mend the Walrus"),
            ("perf(sea)!: turn the walrus", "turn the walrus"),
            ("Teach the walrus: a start", "Teach the walrus: a start"),
            ("docs(x): walrus (see #9)", "walrus (see #9)"),
            ("wip: keep", "wip: keep"),
            ("(#12)", "(#12)"),
        ];
        for (line, title) in cases {
            assert_eq!(subject(line).title, title, "{line}");
        }
    }

    #[test]
    fn scope_mark_and_number_are_taken_apart() {
        let found = subject("feat(sea)!: teach (#4711)");
        assert_eq!(found.scope.as_deref(), Some("sea"));
        assert!(found.is_breaking);
        assert_eq!(found.request.as_deref(), Some("#4711"));
        assert_eq!(found.change, Some(ChangeType::Feature));
        assert_eq!(subject("fix(web): mend (#12) the lantern").request, None);
    }

    #[test]
    fn trailers_are_neither_subject_nor_summary() {
        let message = Message::parse(
            "Fix it\nSigned-off-by: A <a@b>\n\nFirst of\ntwo lines.\nCc: x\n\nMore.",
        );
        assert_eq!(message.subject.title, "Fix it");
        assert_eq!(message.summary.as_deref(), Some("First of two lines."));
        assert_eq!(
            Message::parse("x\n\nCo-authored-by: B <b@c>\n").summary,
            None
        );
    }

    #[test]
    fn a_breaking_footer_speaks_when_nothing_else_does() {
        let only = "feat!: drop v1\n\nBREAKING CHANGE: clients must use\nv2.\nRefs: #1";
        let summary = Message::parse(only).summary;
        assert_eq!(summary.as_deref(), Some("clients must use v2."));
        let both = "feat!: drop v1\n\nNobody calls it.\n\nBREAKING CHANGE: use v2";
        assert_eq!(
            Message::parse(both).summary.as_deref(),
            Some("Nobody calls it.")
        );
    }

    #[test]
    fn breaking_footers_and_reverts_are_seen() {
        let message = Message::parse(
            "Revert \"feat: x\"\n\nThis reverts commit 0123456789ABCDEF0123456789abcdef01234567.\n",
        );
        assert!(message.is_revert);
        assert_eq!(
            message.reverts.as_deref(),
            Some("0123456789abcdef0123456789abcdef01234567")
        );
        assert!(Message::parse("feat: x\n\nBREAKING CHANGE: y").is_breaking());
    }

    #[test]
    fn a_request_needs_its_form_and_a_telling_line() {
        let github = MergedRequest::parse(
            "Merge pull request #7 from a/b\n\n\nfeat(x): teach\n\nWhy.\n\nSigned-off-by: c <d>",
        );
        let github = github.expect("a request");
        assert_eq!(
            (github.number.as_str(), github.subject.title.as_str()),
            ("#7", "teach")
        );
        assert_eq!(github.summary.as_deref(), Some("Why."));
        let gitlab =
            MergedRequest::parse("Merge branch 'a' into 'b'\n\nTeach\n\nSee merge request g/p!12");
        assert_eq!(gitlab.map(|request| request.number), Some("!12".to_owned()));
        for raw in [
            "Merge pull request #7 from a/b",
            "Merge pull request #7 from a/b\n\nSigned-off-by: c <d>",
            "Merge branch 'a' into 'b'\n\nTeach",
            "Merge branch 'a'\n\nTeach\n\nSee merge request g/p!12",
            "Merge branch 'a' into 'b'\n\nSee merge request g/p!12",
        ] {
            assert_eq!(MergedRequest::parse(raw), None, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn any_message_is_taken_apart(raw in "\\PC{0,60}(\n\\PC{0,40}){0,4}") {
            let message = Message::parse(&raw);
            prop_assert!(!message.subject.title.contains('\n'));
            let _ = MergedRequest::parse(&raw);
        }
    }
}
