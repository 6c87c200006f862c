//! `lark-inbox material-review`: settles an unaddressed message by the effect it had, or by the reason that nothing follows.
//!
//! Receipt and acknowledgement are one transaction under the settlement lock: both or none.

use serde_json::Value;

use crate::contract::error::ContractError;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::event::StoredEvent;
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::packet::{
    EFFECT_KINDS, EFFECT_RECEIPT, MaterialPacket, Settlement, no_follow_up_id, reference,
};
use crate::contract::parse::{Fields, Label};
use crate::contract::{json, text};
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::context::{ContextArgs, Desk, Source};
use crate::flow::inbox::error::InboxError;
use crate::store::StoreError;
use crate::store::inbox::{Exporter, Inbox, MaterialRow};
use crate::store::lock;

/// What the caller says became of the message.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// A receipt as JSON text.
    pub receipt: Option<String>,
    pub no_follow_up: Option<String>,
}

/// Runs the command.
pub fn run(
    desk: &Desk<'_>,
    args: &ContextArgs,
    (message_id, effect): (&str, &Effect),
    mode: Mode,
) -> Result<(MaterialPacket, Activation), InboxError> {
    let (_, activation, source) = desk.open(args, &[Permission::InboxWrite])?;
    let store = reviewable(&source, message_id)?;
    let event = store
        .event(message_id)?
        .ok_or(InboxFault::ReviewNotCaptured)?;
    if event.is_addressed() {
        return Err(InboxFault::ReviewAddressed.into());
    }
    let execute = mode.is_execute();
    let Some(settlement) = decide(&event, effect)? else {
        let event_ref = reference(&event_id(&event));
        return Ok((MaterialPacket::undecided(execute, event_ref), activation));
    };
    let packet = match mode {
        Mode::Preview => MaterialPacket::new(
            execute,
            standing(&store, message_id, &settlement)?.unwrap_or("preview_ready"),
            &settlement,
        ),
        Mode::Execute => settle(&store, message_id, &settlement, &desk.now.to_string())?,
    };
    Ok((packet, activation))
}

fn reviewable(source: &Source, message_id: &str) -> Result<Inbox, InboxError> {
    let inbox = source.holder(message_id)?;
    match inbox.config.material_review {
        Some(_) => Ok(inbox.store()?),
        None => Err(InboxFault::ReviewDisabled.into()),
    }
}

fn event_id(event: &StoredEvent) -> String {
    event.event_id().map_or_else(
        || event.message_id().as_str().to_owned(),
        |id| id.as_str().to_owned(),
    )
}

/// Derives the settlement; none when the receipt does not commit this event.
fn decide(event: &StoredEvent, effect: &Effect) -> Result<Option<Settlement>, InboxFault> {
    let event_id = event_id(event);
    let settlement = |effect_id: &str, kind: &str| Settlement {
        event_ref: reference(&event_id),
        effect_ref: reference(effect_id),
        effect_kind: kind.to_owned(),
    };
    match (
        &effect.receipt,
        effect.no_follow_up.as_deref().map(text::trim),
    ) {
        (Some(_), Some(_)) => Err(InboxFault::ReviewBoth),
        (None, None | Some("")) => Err(InboxFault::ReviewNeither),
        (None, Some(reason)) if text::is_longer_than(reason, 400) => {
            Err(InboxFault::ReviewReasonLong)
        }
        (None, Some(reason)) => Ok(Some(settlement(
            &no_follow_up_id(&event_id, reason),
            EFFECT_KINDS[4],
        ))),
        (Some(receipt), None) => {
            let receipt = read_receipt(receipt).map_err(InboxFault::ReviewReceipt)?;
            let commits = receipt.event_id == event_id && receipt.status == "committed";
            Ok(commits.then(|| settlement(&receipt.effect_id, &receipt.effect_kind)))
        }
    }
}

struct EffectReceipt {
    event_id: String,
    effect_id: String,
    effect_kind: String,
    status: String,
}

fn read_receipt(given: &str) -> Result<EffectReceipt, ContractError> {
    let at = Label::named("effect_receipt");
    let value = json::parse_object(given.as_bytes()).map(Value::Object);
    let value = value.map_err(|fault| ContractError::invalid(&at, fault.to_string()))?;
    let mut fields = Fields::open(&at, &value)?;
    fields.constant("schema_version", EFFECT_RECEIPT)?;
    let kinds: Vec<(&str, usize)> = EFFECT_KINDS
        .iter()
        .enumerate()
        .map(|(index, kind)| (*kind, index))
        .collect();
    let kind = fields.choice("effect_kind", &kinds)?;
    let receipt = EffectReceipt {
        event_id: fields.text("event_id", 200)?,
        effect_id: fields.text("effect_id", 200)?,
        effect_kind: EFFECT_KINDS[kind].to_owned(),
        status: fields.text("status", 40)?,
    };
    fields.finish(receipt)
}

/// Says what stands already against this settlement; none when nothing does.
fn standing(
    store: &Inbox,
    message_id: &str,
    settlement: &Settlement,
) -> Result<Option<&'static str>, StoreError> {
    let damaged = StoreError::Corrupt("a material receipt is not readable");
    match store.material(message_id)? {
        Some(row) => {
            let row = json::parse_kept(row.0.as_bytes())
                .map(Value::Object)
                .map_err(|_| damaged)?;
            let same = settlement.is_row(&row);
            Ok(Some(if same {
                "already_settled"
            } else {
                "material_review_receipt_conflict"
            }))
        }
        None if store.processed(&[message_id])? == [true] => {
            Ok(Some("material_review_receipt_missing_for_processed_event"))
        }
        None => Ok(None),
    }
}

fn settle(
    store: &Inbox,
    message_id: &str,
    settlement: &Settlement,
    now: &str,
) -> Result<MaterialPacket, InboxError> {
    let _held = store.settlement_lock::<lock::Settlement>(&claim("material-review", now))?;
    if let Some(status) = standing(store, message_id, settlement)? {
        return Ok(MaterialPacket::new(true, status, settlement));
    }
    store.settle_material(message_id, &MaterialRow(settlement.to_row()), now)?;
    failpoint!(Point::MaterialReviewCommitted);
    let mut out = Exporter::default();
    store.export_material(&mut out)?;
    store.export_processed(&mut out)?;
    Ok(MaterialPacket::new(true, "settled", settlement).with_export_pending(out.is_pending()))
}
