//! `lark-inbox export`: makes the files of an inbox say what its rows say. Files are compared, never believed.

use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::packet::{ExportCounts, ExportPacket, RoutedFlags};
use crate::flow::Mode;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::catch_up::Bound;
use crate::flow::inbox::context::{ContextArgs, Desk, Located, Source, read_document};
use crate::flow::inbox::document::{Document, is_comment_config};
use crate::flow::inbox::error::InboxError;
use crate::store::inbox::{Exporter, Inbox};
use crate::store::lock::Settlement;

/// Runs the command.
pub fn run(
    desk: &Desk<'_>,
    args: &ContextArgs,
    mode: Mode,
) -> Result<(ExportPacket, Activation), InboxError> {
    let located = desk.locate(args)?.ok_or(InboxFault::NotConfigured)?;
    let activation = desk.require(&[Permission::InboxWrite])?;
    let (stores, is_routed) = stores(desk, &located)?;
    let mut out = Exporter::default();
    let mut sums = ExportCounts::default();
    for (store, position) in &stores {
        let now = desk.now.to_string();
        add(
            &mut sums,
            (store, position.as_ref()),
            (mode, &mut out),
            (&located, &now),
        )?;
    }
    let routed = is_routed.then(|| RoutedFlags::of(stores.len()));
    Ok((
        ExportPacket::new(mode.is_execute(), sums, routed, out.is_pending()),
        activation,
    ))
}

/// An inbox, and what its position at turn starts is bound to.
type Exported = (Inbox, Option<Bound>);

/// The inboxes a configuration names; a document's own inbox is one too.
fn stores(desk: &Desk<'_>, located: &Located) -> Result<(Vec<Exported>, bool), InboxError> {
    let value = read_document(&located.config)?;
    if is_comment_config(&value) {
        let (document, _) = Document::of(located, &value)?;
        document.require_enabled()?;
        return Ok((vec![(document.store, None)], false));
    }
    Ok(match desk.read(located)? {
        Source::Single(inbox) => (vec![(inbox.store()?, None)], false),
        Source::Routed(collector) => {
            let stores = collector
                .enabled()
                .map(|route| Ok((route.store()?, Bound::of(&collector, route).ok())));
            (stores.collect::<Result<_, InboxError>>()?, true)
        }
    })
}

fn add(
    sums: &mut ExportCounts,
    (store, position): (&Inbox, Option<&Bound>),
    (mode, out): (Mode, &mut Exporter),
    (located, now): (&Located, &str),
) -> Result<(), InboxError> {
    let survey = match mode {
        Mode::Preview => store.reconcile_exports(None)?,
        // An export with many entries must not land after a newer one of a settlement.
        Mode::Execute if store.is_present() => {
            let _held = store.settlement_lock::<Settlement>(&claim("export", now))?;
            store.reconcile_exports(Some(&mut *out))?
        }
        Mode::Execute => store.reconcile_exports(None)?,
    };
    sums.expected += survey.expected;
    sums.stale += survey.stale;
    sums.removed += survey.removable;
    sums.orphans += survey.orphans;
    if let Some(bound) = position {
        let file = bound.sync_file(&located.project);
        let is_sound = store.is_sync_export_sound(&file)?;
        sums.expected += u64::from(is_sound.is_some());
        if is_sound == Some(false) {
            sums.stale += 1;
            if mode.is_execute() {
                store.export_sync(out, &file)?;
            }
        }
    }
    Ok(())
}
