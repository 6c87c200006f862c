//! The registry: one JSON file that operators may edit by hand (docs/spec/kernel.md 3.1).
//!
//! Reading is strict and nothing of it is kept elsewhere; the digest of its bytes is its revision. A change is built from
//! exactly the bytes that were read, keeps every member, order and number as spelled, and is refused when the file is no
//! longer the one that was read.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::contract::digest;
use crate::contract::error::ContractError;
use crate::contract::goal::Goal;
use crate::contract::ids::GoalId;
use crate::contract::json;
use crate::contract::parse::Label;
use crate::store::StoreError;
use crate::store::lock::{self, Claim, Held};
use crate::store::private_file;

/// Why a registry gives no permission.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Its bytes are not the JSON object it must be.
    #[error("the registry {0}")]
    InvalidJson(&'static str),
    /// It may not be read.
    #[error("the registry may not be read")]
    PermissionDenied,
    /// It could not be read.
    #[error("the registry could not be read")]
    Io(#[source] io::Error),
    /// A member has another form.
    #[error("the registry: {0}")]
    Field(ContractError),
    /// It is no longer the file that was read.
    #[error("the registry changed meanwhile")]
    Changed {
        /// The revision found.
        current: String,
    },
    /// It could not be locked or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

const TOO_LARGE: RegistryError =
    RegistryError::InvalidJson("is larger than 64 MiB; take finished goals out of it");

/// One registry file as read.
#[derive(Clone, Debug)]
pub struct Registry {
    path: PathBuf,
    revision: String,
    is_present: bool,
    document: Map<String, Value>,
}

impl Registry {
    /// Reads the file; a missing one is an empty list of goals.
    pub fn read(path: &Path) -> Result<Self, RegistryError> {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let bytes = match private_file::read_regular(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(RegistryError::InvalidJson("is not a regular file"));
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(TOO_LARGE);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(RegistryError::PermissionDenied);
            }
            Err(error) => return Err(RegistryError::Io(error)),
        };
        let revision = digest::content_digest(bytes.as_deref().unwrap_or_default()).to_string();
        let document = match &bytes {
            None => Map::new(),
            Some(bytes) => json::parse_object(bytes).map_err(|_| {
                RegistryError::InvalidJson("is not one JSON object with unique keys")
            })?,
        };
        let registry = Self {
            path,
            revision,
            is_present: bytes.is_some(),
            document,
        };
        registry.check_ids()?;
        Ok(registry)
    }

    fn check_ids(&self) -> Result<(), RegistryError> {
        let mut seen = std::collections::HashSet::new();
        for (index, entry) in self.entries()?.iter().enumerate() {
            let at = Label::named("goals").item(index);
            let id = entry
                .get("id")
                .and_then(Value::as_str)
                .filter(|id| GoalId::new(*id).is_some());
            let id =
                id.ok_or_else(|| RegistryError::Field(field(&at.field("id"), "must name a goal")))?;
            if !seen.insert(id) {
                return Err(RegistryError::Field(field(
                    &at.field("id"),
                    "names a goal twice",
                )));
            }
        }
        Ok(())
    }

    fn entries(&self) -> Result<&[Value], RegistryError> {
        match self.document.get("goals") {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(entries)) => Ok(entries),
            Some(_) => Err(RegistryError::Field(field(
                &Label::named("goals"),
                "must be a list",
            ))),
        }
    }

    /// Digest of the file's bytes.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True when the file exists.
    pub fn is_present(&self) -> bool {
        self.is_present
    }

    /// The runtime root it names.
    pub fn common_runtime_root(&self) -> Option<&str> {
        self.document
            .get("common_runtime_root")
            .and_then(Value::as_str)
            .filter(|root| !root.is_empty())
    }

    /// The goals in file order.
    pub fn goals(&self) -> Result<Vec<Goal>, RegistryError> {
        let parse = |(index, entry): (usize, &Value)| {
            Goal::parse(&Label::named("goals").item(index), entry).map_err(RegistryError::Field)
        };
        self.entries()?.iter().enumerate().map(parse).collect()
    }

    /// One goal.
    pub fn goal(&self, id: &GoalId) -> Result<Option<Goal>, RegistryError> {
        let mut entries = self.entries()?.iter().enumerate();
        let Some((index, entry)) =
            entries.find(|(_, entry)| entry.get("id").and_then(Value::as_str) == Some(id.as_str()))
        else {
            return Ok(None);
        };
        Goal::parse(&Label::named("goals").item(index), entry)
            .map(Some)
            .map_err(RegistryError::Field)
    }

    /// The file an entry points to, when its configuration lives elsewhere.
    pub fn source_of(&self, goal: &Goal) -> Option<PathBuf> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        goal.text("source_registry")
            .map(|source| folder.join(source))
    }

    /// The document with one goal's entry changed by `edit`; other members stay as they are.
    pub fn with_entry(
        &self,
        id: &GoalId,
        edit: impl FnOnce(&mut Map<String, Value>),
    ) -> Map<String, Value> {
        let mut document = self.document.clone();
        let entries = document.get_mut("goals").and_then(Value::as_array_mut);
        let entry = entries
            .and_then(|entries| {
                entries
                    .iter_mut()
                    .find(|entry| entry.get("id").and_then(Value::as_str) == Some(id.as_str()))
            })
            .and_then(Value::as_object_mut);
        if let Some(entry) = entry {
            edit(entry);
        }
        document
    }

    /// The document with one more goal, and the runtime root when it is to be recorded.
    pub fn with_new_entry(
        &self,
        entry: Map<String, Value>,
        common_runtime_root: Option<&str>,
    ) -> Map<String, Value> {
        let mut document = self.document.clone();
        if let Some(root) = common_runtime_root {
            document.insert("common_runtime_root".to_owned(), json!(root));
        }
        let goals = document.entry("goals").or_insert_with(|| json!([]));
        if let Some(goals) = goals.as_array_mut() {
            goals.push(Value::Object(entry));
        }
        document
    }

    /// Replaces the file this was read from, if it still is that file; returns the new revision.
    pub fn replace(
        &self,
        _held: &Held<lock::Registry>,
        document: &Map<String, Value>,
    ) -> Result<String, RegistryError> {
        let bytes =
            json::pretty(document).map_err(|_| RegistryError::InvalidJson("cannot be written"))?;
        // What cannot be read again is not written.
        if bytes.len() as u64 > private_file::LARGEST_BYTES {
            return Err(TOO_LARGE);
        }
        let now = private_file::read_regular(&self.path)
            .map_err(RegistryError::Io)?
            .unwrap_or_default();
        let current = digest::content_digest(&now).to_string();
        if current != self.revision {
            return Err(RegistryError::Changed { current });
        }
        if let Some(folder) = self.path.parent() {
            private_file::create_dir(folder).map_err(StoreError::write)?;
        }
        private_file::replace(&self.path, bytes.as_bytes()).map_err(StoreError::write)?;
        crate::failpoint!(crate::failpoint::Point::RegistryReplaced);
        Ok(digest::content_digest(bytes.as_bytes()).to_string())
    }
}

/// Takes the lock of a registry file.
pub fn lock_for_edit(path: &Path, claim: &Claim<'_>) -> Result<Held<lock::Registry>, StoreError> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut name = path.into_os_string();
    name.push(".lock");
    lock::acquire(Path::new(&name), claim)
}

/// Marks the folder of a registry as private to version control.
pub fn ignore_folder(folder: &Path) -> Result<(), StoreError> {
    private_file::create_dir(folder).map_err(StoreError::write)?;
    let path = folder.join(".gitignore");
    if path.exists() {
        return Ok(());
    }
    match private_file::create(&path, b"*\n") {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(StoreError::write(error)),
        _ => Ok(()),
    }
}

fn field(at: &Label, reason: &'static str) -> ContractError {
    ContractError::coded(
        crate::contract::error::ErrorCode::RegistryInvalid,
        at,
        reason,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim<'static> {
        Claim {
            lock_id: "r",
            agent_id: None,
            operation: "test",
            policy: lock::Policy::Mutation,
            now: "",
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_know_and_a_changed_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.json");
        std::fs::write(&path, r#"{"zeta":1.50,"goals":[{"id":"g","weight":1E+2}]}"#).unwrap();
        let registry = Registry::read(&path).unwrap();
        let id = GoalId::new("g").unwrap();
        let document = registry.with_entry(&id, |entry| {
            entry.insert("title".to_owned(), json!("t"));
        });
        let held = lock_for_edit(&path, &claim()).unwrap();
        let after = registry.replace(&held, &document).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("1.50") && text.contains("1E+2"));
        assert_eq!(Registry::read(&path).unwrap().revision(), after);
        assert!(matches!(
            registry.replace(&held, &document),
            Err(RegistryError::Changed { .. })
        ));
    }

    #[test]
    fn broken_registries_give_no_goal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.json");
        for text in [
            "[]",
            "{",
            r#"{"goals":1}"#,
            r#"{"goals":[{"id":"g"},{"id":"g"}]}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":NaN}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(Registry::read(&path).is_err(), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(Registry::read(&path).unwrap().goals().unwrap().is_empty());
    }
}
