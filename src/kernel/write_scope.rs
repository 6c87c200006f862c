//! Whether two write scopes may meet (docs/spec/kernel.md 4.3).
//!
//! Scopes are words of agents, read by no file system here. Where it cannot be told that two keep apart, they overlap: a
//! lease that is refused in vain costs a wait, one given in vain costs the work of both.

/// What a scope covers.
#[derive(Debug, PartialEq, Eq)]
enum Scope {
    /// A file, or a folder and all below it.
    Place(String),
    /// Whatever starts with this text.
    Prefix(String),
}

/// From here on a scope is a pattern.
const PATTERN: [char; 5] = ['*', '?', '[', '{', '\\'];

/// True when a path may be covered by one of the left and by one of the right.
pub fn overlap(left: &[String], right: &[String]) -> bool {
    left.iter()
        .any(|left| right.iter().any(|right| may_meet(left, right)))
}

fn may_meet(left: &str, right: &str) -> bool {
    // Where a relative scope begins is not known here, so it may lie in any absolute one.
    if left.trim().starts_with('/') != right.trim().starts_with('/') {
        return true;
    }
    match (&read(left), &read(right)) {
        (Scope::Place(left), Scope::Place(right)) => is_in(left, right) || is_in(right, left),
        (Scope::Prefix(prefix), Scope::Place(place))
        | (Scope::Place(place), Scope::Prefix(prefix)) => {
            format!("{place}/").starts_with(prefix) || is_in(prefix, place)
        }
        (Scope::Prefix(left), Scope::Prefix(right)) => {
            left.starts_with(right) || right.starts_with(left)
        }
    }
}

fn is_in(inner: &str, outer: &str) -> bool {
    outer.is_empty() || inner == outer || inner.starts_with(&format!("{outer}/"))
}

fn read(scope: &str) -> Scope {
    let scope = scope.trim();
    // "All but" covers nearly all, and `~` is somebody's folder.
    if scope.starts_with(['!', '~']) {
        return Scope::Prefix(String::new());
    }
    let end = scope.find(PATTERN);
    let literal = &scope[..end.unwrap_or(scope.len())];
    // Behind a pattern, `..` leads who knows where.
    if end.is_some_and(|end| scope[end..].split('/').any(|part| part == "..")) {
        return Scope::Prefix(String::new());
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in literal.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Scope::Prefix(String::new()),
            ".." => {}
            part => parts.push(part),
        }
    }
    let text = parts.join("/");
    match end {
        None => Scope::Place(text),
        // `src/*` is a pattern inside a folder, `src*` one of names.
        Some(_) if literal.ends_with('/') && !text.is_empty() => Scope::Prefix(format!("{text}/")),
        Some(_) => Scope::Prefix(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(left: &str, right: &str) -> bool {
        let list = |text: &str| vec![text.to_owned()];
        let both = overlap(&list(left), &list(right));
        assert_eq!(both, overlap(&list(right), &list(left)), "{left} {right}");
        both
    }

    #[test]
    fn scopes_that_may_meet_overlap() {
        for (left, right) in [
            ("src", "src"),
            ("src/**", "src/a.rs"),
            ("src/**", "src"),
            ("src/a*", "src/ab.rs"),
            ("./src/a*", "src/ab.rs"),
            ("src//a.rs", "src/./a.rs"),
            ("src/*/x.rs", "src/b/x.rs"),
            ("*.rs", "src"),
            ("src/*.rs", "src/a.*"),
            ("src/b/../a.rs", "src/a.rs"),
            ("src/*/../../docs", "docs"),
            ("../other", "docs"),
            ("src/.*", "src/.hidden"),
            ("/home/repo/src", "src"),
            ("!docs", "src"),
            (".", "src"),
            ("", "src"),
            ("src/[ab].rs", "src/a.rs"),
            ("src/{a,b}", "src/b/c.rs"),
        ] {
            assert!(meet(left, right), "{left} {right}");
        }
    }

    #[test]
    fn scopes_that_cannot_meet_do_not_overlap() {
        for (left, right) in [
            ("src/a", "src/ab"),
            ("src/**", "docs/**"),
            ("src/ab*", "src/a"),
            ("src/a*", "src/b.rs"),
            ("./src", "docs/"),
            ("/a/b", "/a/c"),
        ] {
            assert!(!meet(left, right), "{left} {right}");
        }
        assert!(!overlap(&[], &["src".to_owned()]));
    }
}
