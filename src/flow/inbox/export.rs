//! `lark-inbox export`: makes the files of an inbox say what its rows say. Files are compared, never believed.

use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::packet::{ExportCounts, ExportPacket, RoutedFlags};
use crate::flow::Mode;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::context::{ContextArgs, Desk, Located, Source, read_document};
use crate::flow::inbox::document_comment::{Document, is_comment_config};
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
    for store in &stores {
        add(&mut sums, store, (mode, &mut out), &desk.now.to_string())?;
    }
    let routed = is_routed.then(|| RoutedFlags::of(stores.len()));
    Ok((
        ExportPacket::new(mode.is_execute(), sums, routed, out.is_pending()),
        activation,
    ))
}

/// The inboxes a configuration names; a document's own inbox is one too.
fn stores(desk: &Desk<'_>, located: &Located) -> Result<(Vec<Inbox>, bool), InboxError> {
    let value = read_document(&located.config)?;
    if is_comment_config(&value) {
        let (document, _) = Document::of(located, &value)?;
        document.require_enabled()?;
        return Ok((vec![document.store], false));
    }
    Ok(match desk.read(located)? {
        Source::Single(inbox) => (vec![inbox.store()?], false),
        Source::Routed(collector) => {
            let stores = collector.enabled().map(|route| route.store());
            (stores.collect::<Result<_, _>>()?, true)
        }
    })
}

fn add(
    sums: &mut ExportCounts,
    store: &Inbox,
    (mode, out): (Mode, &mut Exporter),
    now: &str,
) -> Result<(), InboxError> {
    let survey = match mode {
        Mode::Preview => store.reconcile_exports(None)?,
        // An export with many entries must not land after a newer one of a settlement.
        Mode::Execute if store.is_present() => {
            let _held = store.settlement_lock::<Settlement>(&claim("export", now))?;
            store.reconcile_exports(Some(out))?
        }
        Mode::Execute => store.reconcile_exports(None)?,
    };
    sums.expected += survey.expected;
    sums.stale += survey.stale;
    sums.removed += survey.removable;
    sums.orphans += survey.orphans;
    Ok(())
}
