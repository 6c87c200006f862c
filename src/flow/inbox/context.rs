//! Which inbox a command works on: its configuration, its folder, its route.
//!
//! 1. project  2. configuration file, inside the project  3. the right to run  4. read  5. every path resolved, none leaves the project

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::contract::channel::ids::RouteKey;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::collector::{CollectorConfig, RouteRef, is_collector};
use crate::contract::inbox::config::{INBOX_CONFIG, INBOX_CONFIG_FAMILY, InboxConfig};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::words;
use crate::contract::json;
use crate::contract::time::Timestamp;
use crate::flow::extension_gate::require;
use crate::flow::inbox::error::InboxError;
use crate::flow::place::Place;
use crate::kernel::inbox::collector::{self, BoundProfile};
use crate::kernel::inbox::ingest::Into as IngestInto;
use crate::port::placement::{ConfigPlacement, Placement};
use crate::store::document::extension_state::ExtensionStateFile;
use crate::store::inbox::Inbox;
use crate::store::private_file;

/// What a command line says about its context.
#[derive(Clone, Debug, Default)]
pub struct ContextArgs {
    pub project: Option<PathBuf>,
    pub config: Option<PathBuf>,
    pub goal_id: Option<String>,
    pub agent_id: Option<String>,
}

/// What every inbox command has at hand.
pub struct Desk<'a> {
    pub place: &'a Place,
    pub placement: &'a dyn ConfigPlacement,
    pub now: Timestamp,
}

/// A configuration file inside its project.
#[derive(Clone, Debug)]
pub struct Located {
    /// The resolved project.
    pub project: PathBuf,
    /// The resolved configuration file.
    pub config: PathBuf,
}

/// One enabled or disabled inbox with its resolved folder.
#[derive(Clone, Debug)]
pub struct BoundInbox {
    pub config: InboxConfig,
    pub route: Option<RouteRef>,
    /// The resolved folder; none for a disabled inbox without one.
    pub folder: Option<PathBuf>,
    /// The folder relative to the project, in POSIX form.
    pub folder_ref: String,
}

/// A collector with its routes in order.
#[derive(Clone, Debug)]
pub struct BoundCollector {
    pub config: CollectorConfig,
    pub document: Value,
    pub profile: Option<BoundProfile>,
    pub routes: Vec<BoundInbox>,
}

/// What a configuration file turned out to be.
#[derive(Clone, Debug)]
pub enum Source {
    Single(Box<BoundInbox>),
    Routed(Box<BoundCollector>),
}

impl Desk<'_> {
    /// Finds the configuration file; none when the goal configures no inbox.
    pub fn locate(&self, args: &ContextArgs) -> Result<Option<Located>, InboxError> {
        if let Some(config) = &args.config {
            let project = args.project.as_deref().unwrap_or(Path::new("."));
            return Ok(Some(locate_in(project, config)?));
        }
        let Some(goal) = &args.goal_id else {
            return Err(InboxFault::ContextRequired.into());
        };
        let entry = self
            .place
            .goal_entry(goal)
            .map_err(|_| InboxFault::RegistryInvalid)?;
        let entry = entry.ok_or(InboxFault::GoalUnknown)?;
        let plane = entry.value.get("control_plane");
        let Some(config) = configured(plane, args.agent_id.as_deref()) else {
            return Ok(None);
        };
        let project = args.project.clone().unwrap_or(entry.project);
        Ok(Some(locate_in(&project, Path::new(&config))?))
    }

    /// Requires the right to run.
    pub fn require(&self, permissions: &[Permission]) -> Result<Activation, InboxError> {
        let file = ExtensionStateFile::of_runtime(&self.place.runtime_root);
        Ok(require(&file, permissions)?)
    }

    /// Reads the configuration of a command that needs one.
    pub fn open(
        &self,
        args: &ContextArgs,
        permissions: &[Permission],
    ) -> Result<(Located, Activation, Source), InboxError> {
        let located = self.locate(args)?.ok_or(InboxFault::NotConfigured)?;
        let activation = self.require(permissions)?;
        let source = self.read(&located)?;
        Ok((located, activation, source))
    }

    /// Reads the configuration of a command that needs a collector.
    pub fn open_collector(
        &self,
        args: &ContextArgs,
        permissions: &[Permission],
    ) -> Result<(Located, Activation, BoundCollector), InboxError> {
        match self.open(args, permissions)? {
            (located, activation, Source::Routed(collector)) => {
                Ok((located, activation, *collector))
            }
            (_, _, Source::Single(_)) => Err(InboxFault::CollectorConfigRequired.into()),
        }
    }

    /// Reads a located configuration of either kind.
    pub fn read(&self, located: &Located) -> Result<Source, InboxError> {
        let value = read_document(&located.config)?;
        if is_collector(&value) {
            return Ok(Source::Routed(Box::new(
                self.bind_collector(located, value)?,
            )));
        }
        let config = parse_inbox(&value)?;
        Ok(Source::Single(Box::new(bind_inbox(
            &located.project,
            config,
            None,
        )?)))
    }

    /// Checks a document as if it were the located configuration.
    pub(super) fn bind_document(
        &self,
        located: &Located,
        document: Value,
    ) -> Result<BoundCollector, InboxError> {
        self.bind_collector(located, document)
    }

    fn bind_collector(
        &self,
        located: &Located,
        document: Value,
    ) -> Result<BoundCollector, InboxError> {
        self.check_placement(located)?;
        for folder in [
            words::COLLECTOR_STATE,
            words::HISTORY_STATE,
            words::TURN_START_STATE,
        ] {
            resolve_inside(&located.project, Path::new(folder))?;
        }
        let config = CollectorConfig::parse(&document).map_err(InboxFault::Collector)?;
        let mut routes = Vec::with_capacity(config.routes.len());
        for route in &config.routes {
            let file = locate_in(&located.project, Path::new(&route.config.0))?;
            let inbox = parse_inbox(&read_document(&file.config)?)?;
            routes.push(bind_inbox(&located.project, inbox, Some(route.clone()))?);
        }
        let inboxes: Vec<InboxConfig> = routes.iter().map(|route| route.config.clone()).collect();
        let same_path = |one: usize, other: usize| {
            routes[one].folder.is_some() && routes[one].folder == routes[other].folder
        };
        let profile = collector::bind(&config, &inboxes, same_path)?;
        Ok(BoundCollector {
            config,
            document,
            profile,
            routes,
        })
    }

    fn check_placement(&self, located: &Located) -> Result<(), InboxFault> {
        let below_config = located
            .config
            .starts_with(located.project.join(".loopx/config"));
        match self.placement.look(&located.config) {
            Err(_) => Err(InboxFault::GitProbeFailed),
            Ok(Placement::Exposed) => Err(InboxFault::ConfigTracked),
            Ok(Placement::NoWorkTree) if !below_config => Err(InboxFault::ConfigMisplaced),
            Ok(_) => Ok(()),
        }
    }
}

impl BoundInbox {
    /// Returns the store of an enabled inbox.
    pub fn store(&self) -> Result<Inbox, InboxFault> {
        match (&self.folder, self.config.enabled, &self.route) {
            (Some(folder), true, _) => Ok(Inbox::at(folder)),
            (_, _, Some(route)) => Err(InboxFault::RouteDisabled(route.key.clone())),
            _ => Err(InboxFault::NotEnabled),
        }
    }

    /// Returns the key of the route, where there is one.
    pub fn route_key(&self) -> Option<&RouteKey> {
        self.route.as_ref().map(|route| &route.key)
    }

    /// Returns what storing a message needs.
    pub fn ingest_into(&self) -> IngestInto<'_> {
        IngestInto {
            bot: &self.config.bot,
            scope: self.config.capture_scope,
            route: self.route_key(),
        }
    }
}

impl BoundCollector {
    /// Returns the enabled routes.
    pub fn enabled(&self) -> impl Iterator<Item = &BoundInbox> {
        self.routes.iter().filter(|route| route.config.enabled)
    }

    /// Returns the keys of the switched-off routes.
    pub fn disabled_keys(&self) -> Vec<RouteKey> {
        let off = self.routes.iter().filter(|route| !route.config.enabled);
        off.filter_map(|route| route.route_key().cloned()).collect()
    }

    /// Finds one enabled route by its key; a switched-off one is refused by name.
    pub fn route(&self, key: &str) -> Result<Option<&BoundInbox>, InboxFault> {
        let found = self
            .routes
            .iter()
            .find(|route| route.route_key().is_some_and(|known| known.as_str() == key));
        match found {
            Some(route) => route.store().map(|_| Some(route)),
            None => Ok(None),
        }
    }

    /// Finds the one route whose inbox holds a message.
    pub fn holder(&self, message_id: &str) -> Result<&BoundInbox, InboxError> {
        let mut holders = Vec::new();
        for route in self.routes.iter().filter(|route| route.folder.is_some()) {
            // Proof: the filter leaves routes with a folder.
            let folder = route.folder.as_deref().unwrap_or(Path::new("."));
            if Inbox::at(folder).stored(&[message_id])? == [true] {
                holders.push(route);
            }
        }
        match holders.as_slice() {
            [one] => {
                one.store()?;
                Ok(one)
            }
            _ => Err(InboxFault::RouteUnresolved.into()),
        }
    }
}

impl Source {
    /// Finds the inbox that holds a message; a single inbox is asked whether it does by the caller.
    pub fn holder(&self, message_id: &str) -> Result<&BoundInbox, InboxError> {
        match self {
            Self::Single(inbox) => {
                inbox.store()?;
                Ok(inbox)
            }
            Self::Routed(collector) => collector.holder(message_id),
        }
    }

    /// Returns the provider program the configuration names.
    pub fn program(&self) -> Option<String> {
        match self {
            Self::Single(_) => None,
            Self::Routed(collector) => Some(collector.config.program.clone()),
        }
    }
}

/// The configuration file that a goal's control plane names for an agent.
pub(super) fn configured(plane: Option<&Value>, agent: Option<&str>) -> Option<String> {
    let plane = plane?;
    let own = agent
        .and_then(|agent| plane.get(words::AGENT_INBOXES)?.get(agent))
        .filter(|entry| entry.is_object());
    let entry = own.or_else(|| plane.get(words::GOAL_INBOX))?;
    let path = entry
        .get("config_path")
        .and_then(Value::as_str)
        .filter(|path| !path.trim().is_empty());
    path.filter(|_| entry.get("enabled") == Some(&Value::Bool(true)))
        .map(str::to_owned)
}

/// Resolves a configuration file; it must lie inside the resolved project.
pub(super) fn locate_in(project: &Path, config: &Path) -> Result<Located, InboxFault> {
    let project = std::fs::canonicalize(project).map_err(|_| InboxFault::ConfigMissing)?;
    let config =
        std::fs::canonicalize(project.join(config)).map_err(|_| InboxFault::ConfigMissing)?;
    if !config.starts_with(&project) {
        return Err(InboxFault::ConfigOutside);
    }
    Ok(Located { project, config })
}

pub(super) fn read_document(path: &Path) -> Result<Value, InboxFault> {
    // Anything but a regular file could hold the command up for ever.
    let bytes = private_file::read_regular(path).ok().flatten();
    json::parse_object(&bytes.ok_or(InboxFault::ConfigUnreadable)?)
        .map(Value::Object)
        .map_err(|_| InboxFault::ConfigUnreadable)
}

/// Reads an inbox configuration; a later version is not called invalid.
pub(super) fn parse_inbox(value: &Value) -> Result<InboxConfig, InboxFault> {
    let schema = value
        .get("schema_version")
        .and_then(Value::as_str)
        .unwrap_or("");
    if schema != INBOX_CONFIG && schema.starts_with(INBOX_CONFIG_FAMILY) {
        return Err(InboxFault::ConfigSchemaUnsupported);
    }
    InboxConfig::parse(value).map_err(InboxFault::Config)
}

pub(super) fn bind_inbox(
    project: &Path,
    config: InboxConfig,
    route: Option<RouteRef>,
) -> Result<BoundInbox, InboxFault> {
    let folder = config
        .inbox_dir
        .as_deref()
        .map(|dir| {
            // What lies in it may not lie elsewhere either.
            for inner in Inbox::INNER {
                resolve_inside(project, &Path::new(dir).join(inner))?;
            }
            resolve_inside(project, Path::new(dir))
        })
        .transpose()?;
    let folder_ref = folder
        .as_deref()
        .and_then(|folder| folder.strip_prefix(project).ok());
    Ok(BoundInbox {
        folder_ref: folder_ref
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default(),
        config,
        route,
        folder,
    })
}

/// Resolves a path that may not exist yet; links on the way may not lead out of the project.
pub(super) fn resolve_inside(project: &Path, relative: &Path) -> Result<PathBuf, InboxFault> {
    let wanted = project.join(relative);
    let present = wanted
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok())
        .unwrap_or(project);
    let resolved = std::fs::canonicalize(present).map_err(|_| InboxFault::InboxOutside)?;
    let rest = wanted
        .strip_prefix(present)
        .map_err(|_| InboxFault::InboxOutside)?;
    let whole: PathBuf = resolved.join(rest).components().collect();
    if whole.starts_with(project) {
        Ok(whole)
    } else {
        Err(InboxFault::InboxOutside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_agent_entry_decides_alone() {
        let plane = json!({"lark_event_inbox": {"enabled": true, "config_path": "goal"},
            "lark_event_inboxes": {"a": {"enabled": false, "config_path": "own"}, "b": {"enabled": true, "config_path": "b"}}});
        let goal = Some(&plane);
        assert_eq!(configured(goal, Some("a")), None);
        assert_eq!(configured(goal, Some("b")).as_deref(), Some("b"));
        assert_eq!(configured(goal, Some("c")).as_deref(), Some("goal"));
        assert_eq!(configured(goal, None).as_deref(), Some("goal"));
    }

    #[test]
    fn a_link_out_of_the_project_is_refused() {
        let root = tempfile::tempdir().expect("folder");
        let project = std::fs::canonicalize(root.path())
            .expect("resolved")
            .join("p");
        std::fs::create_dir_all(project.join(".loopx/inbox")).expect("made");
        std::os::unix::fs::symlink(root.path(), project.join(".loopx/inbox/out")).expect("linked");
        assert!(resolve_inside(&project, Path::new(".loopx/inbox/out/x")).is_err());
        assert_eq!(
            resolve_inside(&project, Path::new(".loopx/inbox/new/x")),
            Ok(project.join(".loopx/inbox/new/x"))
        );
    }
}
