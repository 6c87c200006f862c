//! Finds the project, the registry file and the runtime root (docs/spec/kernel.md 3.1).
//!
//! It only computes paths: nothing is created here, and the registry is not read. The runtime root depends on one field
//! of the registry, which the caller passes in after its own strict read.

use std::path::{Path, PathBuf};

use super::env;

/// The places one command works on.
#[derive(Clone, Debug)]
pub struct Workspace {
    project: PathBuf,
    registry: PathBuf,
    runtime_flag: Option<PathBuf>,
}

impl Workspace {
    /// Resolves from the global flags, the environment and the current folder.
    pub fn locate(
        registry_flag: Option<&Path>,
        runtime_flag: Option<&Path>,
    ) -> std::io::Result<Self> {
        let cwd = std::env::current_dir()?;
        let project = find_project(&cwd);
        let registry = registry_flag
            .map(|path| cwd.join(path))
            .or_else(|| env::path(env::REGISTRY).map(|path| cwd.join(path)))
            .unwrap_or_else(|| project.join(".loopx").join("registry.json"));
        Ok(Self {
            project,
            registry,
            runtime_flag: runtime_flag.map(|path| cwd.join(path)),
        })
    }

    /// The project of the current folder.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The registry file.
    pub fn registry(&self) -> &Path {
        &self.registry
    }

    /// The folder of the registry file.
    pub fn registry_dir(&self) -> &Path {
        self.registry.parent().unwrap_or(Path::new("/"))
    }

    /// The project a goal entry of this registry names: a relative one counts from the folder that holds `.loopx`.
    pub fn repo(&self, repo: &str) -> PathBuf {
        project_beside(&self.registry).join(repo)
    }

    /// The runtime root that was asked for on this call, by flag or environment: what a `bootstrap` records.
    pub fn requested_runtime_root(&self) -> Option<PathBuf> {
        self.runtime_flag
            .clone()
            .or_else(|| env::path(env::RUNTIME_ROOT).map(|path| absolute(&path)))
    }

    /// The runtime root: flag, registry field, environment, the folder beside the registry.
    pub fn runtime_root(&self, common_runtime_root: Option<&str>) -> PathBuf {
        if let Some(flag) = &self.runtime_flag {
            return flag.clone();
        }
        if let Some(common) = common_runtime_root {
            return self.registry_dir().join(common);
        }
        env::path(env::RUNTIME_ROOT)
            .map(|path| absolute(&path))
            .unwrap_or_else(|| self.registry_dir().join("runtime"))
    }

    /// The same workspace seen from another registry file (an entry with `source_registry`).
    pub fn of_registry(&self, registry: PathBuf) -> Self {
        Self {
            project: self.project.clone(),
            registry,
            runtime_flag: self.runtime_flag.clone(),
        }
    }
}

/// The nearest ancestor with `.loopx/registry.json`, else the nearest with `.git`, else the folder itself.
pub fn find_project(start: &Path) -> PathBuf {
    let by = |marker: &str| {
        start
            .ancestors()
            .find(|folder| folder.join(marker).exists())
    };
    by(".loopx/registry.json")
        .or_else(|| by(".git"))
        .unwrap_or(start)
        .to_path_buf()
}

/// The project a registry file lies in: the folder that holds its `.loopx`, or its own folder when there is none.
pub fn project_beside(registry: &Path) -> &Path {
    let folder = registry.parent().unwrap_or(Path::new("/"));
    match folder.parent() {
        Some(above) if folder.ends_with(".loopx") => above,
        _ => folder,
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_marker_wins_over_a_nearer_repository() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(".loopx")).unwrap();
        std::fs::write(root.path().join(".loopx/registry.json"), "{}").unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(inner.join(".git")).unwrap();
        assert_eq!(find_project(&inner), root.path());
    }

    #[test]
    fn a_relative_repo_counts_from_the_project() {
        let of = |registry: &str| Workspace {
            project: "/elsewhere".into(),
            registry: registry.into(),
            runtime_flag: None,
        };
        let inside = of("/p/.loopx/registry.json");
        assert_eq!(inside.repo("sub"), PathBuf::from("/p/sub"));
        assert_eq!(inside.repo("/q"), PathBuf::from("/q"));
        let shared = of("/shared/goals.json");
        assert_eq!(shared.repo("sub"), PathBuf::from("/shared/sub"));
    }

    #[test]
    fn a_relative_common_root_counts_from_the_registry_folder() {
        let place = Workspace {
            project: "/p".into(),
            registry: "/p/.loopx/registry.json".into(),
            runtime_flag: None,
        };
        assert_eq!(
            place.runtime_root(Some("rt")),
            PathBuf::from("/p/.loopx/rt")
        );
    }
}
