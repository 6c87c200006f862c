//! The installed service: its file, and the list of which profile which service collects.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::file;
use crate::contract::channel::ids::ProfileName;
use crate::contract::digest;
use crate::contract::inbox::collector::Supervisor;
use crate::contract::inbox::words;
use crate::store::lock::{self, Claim, Held, MachineConfiguration};
use crate::store::{StoreError, private_file};

/// Where a supervisor looks for the services of this user.
pub fn service_path(home: &Path, supervisor: Supervisor, name: &str) -> PathBuf {
    match supervisor {
        Supervisor::Launchd => home
            .join("Library/LaunchAgents")
            .join(format!("{name}.plist")),
        Supervisor::Systemd => home
            .join(".config/systemd/user")
            .join(format!("{name}.service")),
    }
}

/// Writes a service file whole.
pub fn write_service(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private_file::create_dir(folder)?;
    }
    private_file::replace(path, text.as_bytes())
}

/// The list of installed services.
#[derive(Clone, Debug)]
pub struct CollectorServices {
    path: PathBuf,
}

impl CollectorServices {
    /// The list of a runtime root.
    pub fn of_runtime(root: &Path) -> Self {
        Self {
            path: root.join(words::SERVICES_FILE),
        }
    }

    fn read(&self) -> Result<Map<String, Value>, StoreError> {
        let value = file::read(&self.path, words::SERVICES_FAMILY, &[words::SERVICES])?;
        match value.as_ref().map(|value| value.get("services")) {
            None => Ok(Map::new()),
            Some(Some(Value::Object(services))) => Ok(services.clone()),
            Some(_) => Err(StoreError::Corrupt("the list of services is not valid")),
        }
    }

    /// Tells whether a service of another name collects this profile.
    pub fn is_taken(&self, profile: &ProfileName, name: &str) -> Result<bool, StoreError> {
        let own = profile_digest(profile);
        let services = self.read()?;
        Ok(services
            .iter()
            .any(|(other, entry)| other != name && entry["profile_digest"] == own.as_str()))
    }

    /// Takes the lock of the list.
    pub fn lock(&self, claim: &Claim<'_>) -> Result<Held<MachineConfiguration>, StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        lock::acquire(Path::new(&name), claim)
    }

    /// Records which profile a service collects.
    pub fn record(
        &self,
        _held: &Held<MachineConfiguration>,
        profile: &ProfileName,
        name: &str,
    ) -> Result<(), StoreError> {
        let mut services = self.read()?;
        services.insert(
            name.to_owned(),
            json!({"profile_digest": profile_digest(profile)}),
        );
        file::write(
            &self.path,
            &json!({"schema_version": words::SERVICES, "services": services}),
        )
    }
}

fn profile_digest(profile: &ProfileName) -> String {
    digest::content_digest(profile.as_str().as_bytes()).short(16)
}
