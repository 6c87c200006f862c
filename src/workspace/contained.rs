//! Whether a relative name stays inside a folder, links resolved.

use std::path::{Component, Path};

/// Tells whether a text is a plain relative path: no root, no `.` or `..`, not empty.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}

/// Tells whether a plain relative name exists inside a folder, also after links are followed.
pub fn holds(folder: &Path, name: &str) -> bool {
    let Ok(root) = folder.canonicalize() else {
        return false;
    };
    is_plain(name)
        && folder
            .join(name)
            .canonicalize()
            .is_ok_and(|found| found.starts_with(&root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_inside_is_held() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("a"), "").unwrap();
        std::fs::write(root.path().join("out"), "").unwrap();
        std::os::unix::fs::symlink(root.path().join("out"), inside.join("link")).unwrap();
        assert!(holds(&inside, "a"));
        for name in ["../out", "/etc", "", "link", "gone", "./a/../../out"] {
            assert!(!holds(&inside, name), "{name}");
        }
    }
}
