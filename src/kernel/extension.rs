//! When an extension may be used, and how its record changes. Everything fails closed.

use crate::contract::extension::{
    Activation, Entrypoint, ExtensionEntry, ExtensionState, InstalledRevision, MAX_REVISIONS,
    Manifest, Permission, RecordedVerification, Unavailable,
};

/// The schema of an activation.
const ACTIVATION_SCHEMA: &str = "loopx_extension_activation_v0";

/// Why a change of the record is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the extension is already installed; use upgrade")]
    AlreadyInstalled,
    #[error("the extension is not installed; install it first")]
    NotInstalled,
    #[error("the extension has this revision already")]
    SameRevision,
    #[error("the extension has no earlier revision to return to")]
    NoEarlierRevision,
}

impl Refused {
    /// Returns the machine code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::AlreadyInstalled => "extension_already_installed",
            Self::NotInstalled => "extension_not_installed",
            Self::SameRevision => "extension_revision_unchanged",
            Self::NoEarlierRevision => "extension_no_earlier_revision",
        }
    }
}

/// Resolves the right to run of a command that needs `permissions`. `entrypoint` is asked only when everything else holds.
pub fn resolve(
    state: &ExtensionState,
    permissions: &[Permission],
    entrypoint: impl FnOnce(&ExtensionEntry) -> bool,
) -> Result<Activation, Unavailable> {
    let id = permissions
        .first()
        .map_or("", |permission| permission.extension());
    resolve_named(state, (id, permissions), entrypoint)
}

/// The same of one extension by its id, whoever provides it.
pub fn resolve_named(
    state: &ExtensionState,
    (id, permissions): (&str, &[Permission]),
    entrypoint: impl FnOnce(&ExtensionEntry) -> bool,
) -> Result<Activation, Unavailable> {
    let refuse = |sentence, command: String| {
        Err(Unavailable {
            sentence,
            recovery_command: command,
        })
    };
    let Some(entry) = state.get(id) else {
        let command = format!("loopx extension install --bundled {id} --execute");
        return refuse("the extension this command needs is not installed", command);
    };
    if !entry.enabled {
        let command = format!("loopx extension enable {id} --execute");
        return refuse("the extension this command needs is disabled", command);
    }
    let doctor = format!("loopx extension doctor {id} --execute");
    if entry.doctor_verified_revision.as_ref() != Some(&entry.active_revision) {
        return refuse(
            "the active revision of the extension is not verified",
            doctor,
        );
    }
    let Some(manifest) = entry.manifest() else {
        return refuse(
            "the active revision of the extension has no manifest",
            doctor,
        );
    };
    let missing = permissions.iter().any(|permission| {
        !manifest
            .permissions
            .iter()
            .any(|held| held == permission.as_str())
    });
    if missing {
        let command = format!("loopx extension upgrade --bundled {id} --execute");
        return refuse(
            "the active revision of the extension does not declare the permission",
            command,
        );
    }
    if !entrypoint(entry) {
        return refuse(
            "the program was replaced since the extension was verified",
            doctor,
        );
    }
    Ok(activation(entry, manifest.version, permissions))
}

/// Says what the recorded verification is worth. `entrypoint` is asked only when everything else holds.
pub fn recorded(
    entry: &ExtensionEntry,
    entrypoint: impl FnOnce(&ExtensionEntry) -> bool,
) -> RecordedVerification {
    match &entry.doctor_verified_revision {
        None => RecordedVerification::Absent,
        Some(verified) if *verified == entry.active_revision && entrypoint(entry) => {
            RecordedVerification::Holds
        }
        Some(_) => RecordedVerification::Stale,
    }
}

fn activation(entry: &ExtensionEntry, version: String, permissions: &[Permission]) -> Activation {
    Activation {
        schema_version: ACTIVATION_SCHEMA,
        extension_id: entry.id.clone(),
        provider_version: version,
        revision: entry.active_revision.clone(),
        enabled: true,
        doctor_verified: true,
        required_permissions: permissions
            .iter()
            .map(|permission| permission.as_str().to_owned())
            .collect(),
    }
}

/// Adds an extension; it is verified and enabled by the probe that came before.
pub fn install(
    state: &ExtensionState,
    manifest: &Manifest,
    probe: &Entrypoint,
) -> Result<ExtensionState, Refused> {
    if state.get(&manifest.id).is_some() {
        return Err(Refused::AlreadyInstalled);
    }
    let mut entry = ExtensionEntry {
        id: manifest.id.clone(),
        enabled: true,
        active_revision: manifest.revision(),
        rollback_revision: None,
        doctor_verified_revision: None,
        doctor_verified_entrypoint_identity: None,
        doctor_verified_entrypoint_facts: None,
        revisions: vec![installed(manifest)],
    };
    verify(&mut entry, Some(probe));
    let mut next = state.clone();
    next.entries.push(entry);
    Ok(next)
}

/// Moves to another revision and keeps the one before.
pub fn upgrade(
    state: &ExtensionState,
    manifest: &Manifest,
    probe: &Entrypoint,
) -> Result<ExtensionState, Refused> {
    change(state, &manifest.id, |entry| {
        let revision = manifest.revision();
        if entry.active_revision == revision {
            return Err(Refused::SameRevision);
        }
        entry.rollback_revision = Some(std::mem::replace(&mut entry.active_revision, revision));
        entry
            .revisions
            .retain(|known| known.revision != entry.active_revision);
        entry.revisions.push(installed(manifest));
        trim(entry);
        entry.enabled = true;
        verify(entry, Some(probe));
        Ok(())
    })
}

/// Swaps the active and the earlier revision.
pub fn rollback(
    state: &ExtensionState,
    id: &str,
    probe: &Entrypoint,
) -> Result<ExtensionState, Refused> {
    change(state, id, |entry| {
        let earlier = entry
            .rollback_revision
            .take()
            .ok_or(Refused::NoEarlierRevision)?;
        entry.rollback_revision = Some(std::mem::replace(&mut entry.active_revision, earlier));
        entry.enabled = true;
        verify(entry, Some(probe));
        Ok(())
    })
}

/// Flips the switch and nothing else.
pub fn switch(state: &ExtensionState, id: &str, to: Switch) -> Result<ExtensionState, Refused> {
    change(state, id, |entry| {
        entry.enabled = to == Switch::On;
        Ok(())
    })
}

/// The two positions of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

/// Records what a probe found; a failed one clears the verification.
pub fn probed(
    state: &ExtensionState,
    id: &str,
    probe: Option<&Entrypoint>,
) -> Result<ExtensionState, Refused> {
    change(state, id, |entry| {
        verify(entry, probe);
        Ok(())
    })
}

fn change(
    state: &ExtensionState,
    id: &str,
    edit: impl FnOnce(&mut ExtensionEntry) -> Result<(), Refused>,
) -> Result<ExtensionState, Refused> {
    let mut next = state.clone();
    let entry = next
        .entries
        .iter_mut()
        .find(|entry| entry.id == id)
        .ok_or(Refused::NotInstalled)?;
    edit(entry)?;
    Ok(next)
}

fn installed(manifest: &Manifest) -> InstalledRevision {
    InstalledRevision {
        revision: manifest.revision(),
        manifest: manifest.clone(),
    }
}

fn verify(entry: &mut ExtensionEntry, probe: Option<&Entrypoint>) {
    entry.doctor_verified_revision = probe.map(|_| entry.active_revision.clone());
    entry.doctor_verified_entrypoint_identity = probe.map(|probe| probe.identity.clone());
    entry.doctor_verified_entrypoint_facts = probe.map(|probe| probe.facts.clone());
}

/// Forgets the oldest revisions, never the active and the earlier one.
fn trim(entry: &mut ExtensionEntry) {
    while entry.revisions.len() > MAX_REVISIONS {
        let needed = |known: &InstalledRevision| {
            known.revision == entry.active_revision
                || Some(&known.revision) == entry.rollback_revision.as_ref()
        };
        let Some(oldest) = entry.revisions.iter().position(|known| !needed(known)) else {
            return;
        };
        entry.revisions.remove(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::extension::CHAT_EXTENSION;

    fn probe() -> Entrypoint {
        Entrypoint {
            identity: "id".to_owned(),
            facts: "facts".to_owned(),
        }
    }

    fn manifest(version: &str) -> Manifest {
        let mut manifest = Manifest::bundled(CHAT_EXTENSION).expect("bundled");
        manifest.version = version.to_owned();
        manifest
    }

    fn fresh() -> ExtensionState {
        install(&ExtensionState::default(), &manifest("1"), &probe()).expect("installed")
    }

    fn cure(state: &ExtensionState, same_program: bool) -> Option<String> {
        resolve(state, &[Permission::InboxRead], |_| same_program)
            .err()
            .map(|refusal| refusal.recovery_command)
    }

    #[test]
    fn each_refusal_names_its_own_cure() {
        assert_eq!(
            cure(&ExtensionState::default(), true).as_deref(),
            Some("loopx extension install --bundled loopx-lark --execute")
        );
        let off = switch(&fresh(), CHAT_EXTENSION, Switch::Off).expect("known");
        assert_eq!(
            cure(&off, true).as_deref(),
            Some("loopx extension enable loopx-lark --execute")
        );
        let unproved = probed(&fresh(), CHAT_EXTENSION, None).expect("known");
        for state in [unproved, fresh()] {
            assert_eq!(
                cure(&state, false).as_deref(),
                Some("loopx extension doctor loopx-lark --execute")
            );
        }
        assert_eq!(cure(&fresh(), true), None);
    }

    #[test]
    fn a_recorded_verification_holds_for_one_revision_and_one_program() {
        let of = |state: &ExtensionState, same| recorded(&state.entries[0], |_| same);
        assert_eq!(of(&fresh(), true), RecordedVerification::Holds);
        assert_eq!(of(&fresh(), false), RecordedVerification::Stale);
        let mut moved = fresh();
        moved.entries[0].active_revision = "another".to_owned();
        assert_eq!(of(&moved, true), RecordedVerification::Stale);
        let unproved = probed(&fresh(), CHAT_EXTENSION, None).expect("known");
        assert_eq!(of(&unproved, true), RecordedVerification::Absent);
    }

    #[test]
    fn an_undeclared_permission_is_refused() {
        let mut narrow = manifest("1");
        narrow.permissions.clear();
        let state = install(&ExtensionState::default(), &narrow, &probe()).expect("installed");
        assert!(resolve(&state, &[Permission::InboxRead], |_| true).is_err());
    }

    #[test]
    fn rollback_returns_to_the_revision_before_and_back() {
        assert_eq!(
            rollback(&fresh(), CHAT_EXTENSION, &probe()),
            Err(Refused::NoEarlierRevision)
        );
        let upgraded = upgrade(&fresh(), &manifest("2"), &probe()).expect("other revision");
        let back = rollback(&upgraded, CHAT_EXTENSION, &probe()).expect("earlier revision");
        assert_eq!(back.entries[0].active_revision, manifest("1").revision());
        assert_eq!(
            back.entries[0].rollback_revision,
            Some(manifest("2").revision())
        );
        assert_eq!(
            upgrade(&fresh(), &manifest("1"), &probe()),
            Err(Refused::SameRevision)
        );
    }

    #[test]
    fn at_most_five_revisions_are_kept_and_the_earlier_one_always() {
        let mut state = fresh();
        for version in 2..12 {
            state =
                upgrade(&state, &manifest(&version.to_string()), &probe()).expect("other revision");
        }
        let entry = &state.entries[0];
        assert_eq!(entry.revisions.len(), MAX_REVISIONS);
        assert!(
            entry
                .revisions
                .iter()
                .any(|known| Some(&known.revision) == entry.rollback_revision.as_ref())
        );
    }
}
