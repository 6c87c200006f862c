//! `doctor`: looks at everything a command relies on, names one next step per finding, and puts right what
//! can be put right without a decision.
//!
//! Without `--execute` nothing is written: not a mode, not a byte of the log.

use std::io;
use std::path::{Path, PathBuf};

use super::doctor_counts;
use super::doctor_receipts::{self, Receipts};
use super::doctor_turns;
use super::mode::Mode;
use super::ports::Ports;
use crate::contract::error::ErrorCode;
use crate::contract::goal::Goal;
use crate::contract::ids::GoalId;
use crate::contract::maintenance::{DoctorPacket, Finding, FindingStatus, Repair, Versions};
use crate::contract::packet::Refusal;
use crate::kernel::zone;
use crate::port::tools::{Found, Need, Tool, Tools};
use crate::store::document::registry::Registry;
use crate::store::maintenance::{self, Health};
use crate::store::state::{Reader, Store};
use crate::store::{StoreError, database, export, schema};

/// What a look found and what could be done about it.
struct Look<'a> {
    ports: &'a Ports,
    mode: Mode,
    findings: Vec<Finding>,
    repairs: Vec<Repair>,
}

/// Looks, and repairs when asked to.
pub fn run(ports: &Ports, tools: &dyn Tools, mode: Mode) -> DoctorPacket {
    let mut look = Look {
        ports,
        mode,
        findings: Vec::new(),
        repairs: Vec::new(),
    };
    if let Some((registry, store)) = look.registry() {
        look.store(&store);
        look.goals(&registry, &store);
        let inboxes = inbox_folders(ports, &registry);
        look.inboxes(&inboxes);
        let mut private = vec![store.root().to_path_buf()];
        private.extend(inboxes);
        look.private_files(&private);
        look.turns(&registry);
    }
    let git = look.tool(tools, Tool::Git, "git");
    let channel_program = look.tool(tools, Tool::Channel, "channel_program");
    look.findings.push(Finding::ok("zone_database"));
    let failed = look
        .findings
        .iter()
        .find(|finding| finding.status == FindingStatus::Failed);
    DoctorPacket {
        ok: failed.is_none(),
        schema_version: "loopx_doctor_v0",
        error_code: failed.and_then(|finding| finding.error_code),
        error: failed.and_then(|finding| finding.next_step.clone()),
        dry_run: mode.is_preview(),
        findings: look.findings,
        versions: Versions {
            loopx: env!("CARGO_PKG_VERSION"),
            store_schema: schema::STATE.latest(),
            zone_database: zone::database_version(),
            sqlite: database::sqlite_version(),
            git,
            channel_program,
        },
        repairs: look.repairs,
    }
}

impl Look<'_> {
    fn registry(&mut self) -> Option<(Registry, Store)> {
        let workspace = &self.ports.workspace;
        match Registry::read(workspace.registry()) {
            Ok(registry) => {
                self.findings.push(Finding::ok("registry"));
                let root = workspace.runtime_root(registry.common_runtime_root());
                Some((registry, Store::at(&root)))
            }
            Err(error) => {
                let refusal = Refusal::from(error);
                self.findings
                    .push(Finding::failed("registry", refusal.code, refusal.message));
                None
            }
        }
    }

    fn store(&mut self, store: &Store) {
        match maintenance::store_health(&store.path()) {
            Health::Absent | Health::Sound(_) => self.findings.push(Finding::ok("store")),
            Health::Unusable(error) => {
                self.findings.push(unusable("store", error));
                return;
            }
        }
        if database::log_bytes(&store.path()) <= maintenance::LARGE_LOG_BYTES {
            self.findings.push(Finding::ok("store_log"));
            return;
        }
        let path = store.path();
        self.repair(
            "store_log",
            "the write-ahead log is large; `loopx doctor --execute` moves it into the store",
            || maintenance::checkpoint_store(&path).unwrap_or(false),
        );
    }

    /// Every entry that once had rows must still have them, and its exports must end where its rows end.
    fn goals(&mut self, registry: &Registry, store: &Store) {
        let Ok(goals) = registry.goals() else {
            return self.findings.push(Finding::failed(
                "goals",
                ErrorCode::RegistryInvalid,
                "a goal's entry is malformed; fix the registry file",
            ));
        };
        let Ok(reader) = store.read() else {
            return;
        };
        let Survey {
            is_lost,
            behind,
            receipts,
            miscounted,
        } = survey(registry, store, (&goals, reader.as_ref()));
        self.findings.push(match is_lost {
            false => Finding::ok("goals"),
            true => Finding::failed(
                "goals",
                ErrorCode::StoreCorrupt,
                "the rows of a known goal are gone; restore a backup with `loopx restore`",
            ),
        });
        self.receipts(&receipts);
        self.counts(&miscounted);
        self.exports(store, &behind);
    }

    /// Turns that are not finished must be able to go on; rights that are about to be taken away are no damage of theirs.
    fn turns(&mut self, registry: &Registry) {
        let Ok(goals) = registry.goals() else {
            return;
        };
        let own = goals
            .iter()
            .filter(|goal| registry.source_of(goal).is_none());
        let mut finding = doctor_turns::finding(self.ports, own);
        let is_loose = |finding: &Finding| {
            finding.check == "permissions" && finding.status != FindingStatus::Ok
        };
        if finding.error_code == Some(ErrorCode::TurnCaptureCorrupt)
            && self.findings.iter().any(is_loose)
        {
            finding = Finding::warning(finding.check, finding.next_step.unwrap_or_default());
        }
        self.findings.push(finding);
    }

    /// Every settlement row must have its event, and every settlement event its row.
    fn receipts(&mut self, found: &Receipts) {
        if found.has_stray {
            return self.findings.push(Finding::failed(
                "receipts",
                ErrorCode::EffectOutcomeUnknown,
                "an event of a settlement has lost its row, so whether it happened is unknown; restore a backup with `loopx restore`",
            ));
        }
        if found.mendable.is_empty() {
            return self.findings.push(Finding::ok("receipts"));
        }
        let ports = self.ports;
        self.repair(
            "receipts",
            "settlement rows have lost their events; `loopx doctor --execute` puts them back",
            || {
                found
                    .mendable
                    .iter()
                    .all(|goal| doctor_receipts::mend(ports, goal).is_ok())
            },
        );
    }

    /// The counts answers are given from are those of the todos.
    fn counts(&mut self, miscounted: &[GoalId]) {
        if miscounted.is_empty() {
            return self.findings.push(Finding::ok("todo_counts"));
        }
        let ports = self.ports;
        self.repair(
            "todo_counts",
            "the counts of todos are not those of the todos; `loopx doctor --execute` counts them again",
            || {
                let mend = |goal| doctor_counts::mend(ports, goal).is_ok();
                miscounted.iter().all(mend)
            },
        );
    }

    fn exports(&mut self, store: &Store, behind: &[GoalId]) {
        if behind.is_empty() {
            return self.findings.push(Finding::ok("exports"));
        }
        let now = self.ports.now;
        self.repair(
            "exports",
            "exports end before their rows; `loopx doctor --execute` completes them",
            || {
                let Ok(writer) = store.write() else {
                    return false;
                };
                behind
                    .iter()
                    .for_each(|goal| writer.bring_up_exports(goal, now));
                true
            },
        );
    }

    fn private_files(&mut self, roots: &[PathBuf]) {
        match gather(roots, maintenance::loose) {
            Err(_) => self.unreadable("permissions"),
            Ok(loose) if loose.is_empty() => self.findings.push(Finding::ok("permissions")),
            Ok(loose) => self.repair(
                "permissions",
                "others may read private files; `loopx doctor --execute` takes their rights away",
                || loose.iter().all(|path| maintenance::tighten(path).is_ok()),
            ),
        }
        let now = self.ports.now;
        match gather(roots, |root| maintenance::leftovers(root, now)) {
            Err(_) => self.unreadable("leftovers"),
            Ok(old) if old.is_empty() => self.findings.push(Finding::ok("leftovers")),
            Ok(old) => self.repair(
                "leftovers",
                "temporary files of killed processes lie about; `loopx doctor --execute` removes them",
                || old.iter().all(|path| maintenance::remove(path).is_ok()),
            ),
        }
    }

    fn unreadable(&mut self, check: &'static str) {
        let next =
            "a private folder cannot be read; give its owner the right to, then run this again";
        self.findings
            .push(Finding::failed(check, ErrorCode::StoreWriteFailed, next));
    }

    fn inboxes(&mut self, folders: &[PathBuf]) {
        let Ok(mut found) = gather(folders, maintenance::inboxes) else {
            return self.unreadable("inboxes");
        };
        found.sort();
        found.dedup();
        let mut faults = found
            .iter()
            .filter_map(|path| match maintenance::inbox_health(path) {
                Health::Unusable(error) => Some(unusable("inboxes", error)),
                _ => None,
            });
        let worst = faults.next();
        self.findings.push(worst.unwrap_or(Finding::ok("inboxes")));
    }

    fn tool(&mut self, tools: &dyn Tools, tool: Tool, check: &'static str) -> Option<String> {
        let (finding, version) = match tools.find(tool) {
            Found::Version(version) => (Finding::ok(check), Some(version)),
            Found::TooOld { version, need } => {
                let Need { program, least, .. } = need;
                let next = format!("`{program}` {version} is too old; install {least} or newer");
                (Finding::warning(check, next), Some(version))
            }
            Found::Missing(Need { program, least, .. }) => {
                let needed_by = needed_by(tool);
                let next = format!(
                    "install `{program}` {least} or newer, and put it on PATH; {needed_by} it"
                );
                (Finding::warning(check, next), None)
            }
        };
        self.findings.push(finding);
        version
    }

    /// Notes what can be put right, and does it when the mode says so.
    fn repair(&mut self, check: &'static str, next_step: &str, mend: impl FnOnce() -> bool) {
        let done = !self.mode.is_preview() && mend();
        self.repairs.push(Repair { check, done });
        self.findings.push(match done {
            true => Finding::ok(check),
            false => Finding::warning(check, next_step),
        });
    }
}

/// Where inboxes may lie: below the project of the call and of every goal.
fn inbox_folders(ports: &Ports, registry: &Registry) -> Vec<PathBuf> {
    let workspace = &ports.workspace;
    let mut projects = vec![workspace.project().to_path_buf()];
    for goal in registry.goals().unwrap_or_default() {
        projects.extend(goal.text("repo").map(|repo| workspace.repo(repo)));
    }
    let mut folders: Vec<PathBuf> = projects
        .iter()
        .map(|project| project.join(".loopx/inbox"))
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Lists what is below several folders; one that cannot be read is no empty one.
fn gather(
    roots: &[PathBuf],
    list: impl Fn(&Path) -> io::Result<Vec<PathBuf>>,
) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for root in roots {
        all.extend(list(root)?);
    }
    Ok(all)
}

/// What a look at the goals of one registry found.
struct Survey {
    /// A known goal has lost its rows.
    is_lost: bool,
    /// Goals whose exports end before their rows.
    behind: Vec<GoalId>,
    /// Their settlement rows.
    receipts: Receipts,
    /// Goals whose todos are not as many as is told.
    miscounted: Vec<GoalId>,
}

/// Looks at the rows of every goal this registry holds.
fn survey(
    registry: &Registry,
    store: &Store,
    (goals, reader): (&[Goal], Option<&Reader>),
) -> Survey {
    let mut is_lost = false;
    let mut behind = Vec::new();
    let mut receipts = Receipts::default();
    // A store that cannot be read is a finding of its own.
    let counted = reader.and_then(|reader| reader.rows().miscounted_goals().ok());
    let miscounted = counted.unwrap_or_default();
    for goal in goals
        .iter()
        .filter(|goal| registry.source_of(goal).is_none())
    {
        let rows = reader.map(Reader::rows);
        let head = rows.and_then(|rows| rows.head(&goal.id).ok().flatten());
        let instance = head.as_ref().map(|head| head.instance_id.as_str());
        is_lost |= goal.instance_id.is_some() && goal.instance_id.as_deref() != instance;
        let Some(rows) = rows.filter(|_| head.is_some()) else {
            continue;
        };
        if !export::is_complete(store.root(), rows, &goal.id).unwrap_or(false) {
            behind.push(goal.id.clone());
        }
        // A store that cannot be read is a finding of its own.
        let _ = receipts.look(rows, &goal.id);
    }
    Survey {
        is_lost,
        behind,
        receipts,
        miscounted: miscounted.into_iter().filter_map(GoalId::new).collect(),
    }
}

fn unusable(check: &'static str, error: StoreError) -> Finding {
    let refusal = Refusal::from(error);
    Finding::failed(check, refusal.code, refusal.message)
}

const fn needed_by(tool: Tool) -> &'static str {
    match tool {
        Tool::Git => "reports from a repository need",
        Tool::Channel => "only channel and inbox commands need",
    }
}
