//! Live streams: `event consume` prints what the state holds and ends as it is told; `event status` and `event stop` of the local bus.
//!
//! `streams[KEY]` = `{"events": [...], "source": [...], "end": {"reason", "rc"}, "ready": false?, "refuse"?: {...}, "live": true?}`. Events are
//! printed once over all consumers; with `live` a consumer goes on until a signal, its timeout or `end`.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::state::{Folder, State};

const POLL: Duration = Duration::from_millis(10);

struct Consumer<'a> {
    folder: &'a Folder,
    key: &'a str,
    received: u64,
    sources: usize,
}

pub(crate) fn consume(folder: &Folder, call: &Call) -> ExitCode {
    if call.has("help") {
        return Answer::text("<help>\n").print();
    }
    let Some(timeout) = duration(call.flag("timeout")) else {
        return Answer::failed(&Failure::argument(), "").print();
    };
    let stop = signals();
    let mut consumer = Consumer {
        folder,
        key: &call.argument,
        received: 0,
        sources: 0,
    };
    let script = consumer.attach(call);
    if let Some(refusal) = script["refuse"].as_object() {
        return refuse(refusal);
    }
    say(&format!("[event] consuming as {} (app)", call.profile));
    say(&format!(
        "[event] listening for events (key={})…",
        call.argument
    ));
    say("[event] to stop gracefully: …");
    if script["ready"] != json!(false) {
        say(&format!("[event] ready event_key={}", call.argument));
    }
    for line in script["noise"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        say(line);
    }
    let started = Instant::now();
    let (reason, rc) = loop {
        let script = consumer.work(call);
        if stop.try_recv().is_ok() {
            break ("signal".to_owned(), 0);
        }
        if timeout.is_some_and(|timeout| started.elapsed() >= timeout) {
            break ("timeout".to_owned(), 0);
        }
        if script["live"] != json!(true) {
            let end = &script["end"];
            break (
                end["reason"].as_str().unwrap_or("timeout").to_owned(),
                u8::try_from(end["rc"].as_u64().unwrap_or(0)).unwrap_or(0),
            );
        }
        std::thread::sleep(POLL);
    };
    consumer.detach();
    if script["end"]["exit_line"] != json!(false) {
        say(&format!(
            "[event] exited \u{2014} received {} event(s) in 1s (reason: {reason})",
            consumer.received
        ));
    }
    ExitCode::from(rc)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Reads a duration with a unit; none for one that is not understood, no bound for zero.
fn duration(text: &str) -> Option<Option<Duration>> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..unit].parse().ok()?;
    let seconds = match &text[unit..] {
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Some((seconds > 0.0).then(|| Duration::from_secs_f64(seconds)))
}

/// A message for each signal that asks to end.
fn signals() -> std::sync::mpsc::Receiver<()> {
    use nix::sys::signal::{SigSet, Signal};
    let (send, receive) = std::sync::mpsc::channel();
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGINT);
    set.thread_block().expect("signals are blocked");
    std::thread::spawn(move || {
        while set.wait().is_ok() {
            let _ = send.send(());
        }
    });
    receive
}

fn refuse(refusal: &serde_json::Map<String, Value>) -> ExitCode {
    for line in refusal
        .get("lines")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        say(line);
    }
    let failure = match refusal.get("kind").and_then(Value::as_str) {
        Some("authorization") => Failure::code(99_991_679),
        Some("config") => Failure::code(10_014),
        _ => Failure::local("validation", "failed_precondition", 2),
    };
    Answer::failed(&failure, "bot").print()
}

impl Consumer<'_> {
    fn attach(&mut self, call: &Call) -> Value {
        let mut held = self.folder.lock();
        let row =
            json!({"pid": std::process::id(), "event_key": self.key, "profile": call.profile});
        held.list("consumers").push(row);
        self.sources = held.0["streams"][self.key]["source"]
            .as_array()
            .map_or(0, Vec::len);
        held.save();
        held.0["streams"][self.key].clone()
    }

    fn detach(&self) {
        let mut held = self.folder.lock();
        let pid = json!(std::process::id());
        held.list("consumers").retain(|row| row["pid"] != pid);
        held.save();
    }

    /// Prints what is new and returns the script as it is now.
    fn work(&mut self, call: &Call) -> Value {
        let mut held = self.folder.lock();
        let events: Vec<Value> = held.0["streams"][self.key]["events"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if !events.is_empty() {
            held.0["streams"][self.key]["events"] = json!([]);
            held.save();
        }
        let script = held.0["streams"][self.key].clone();
        drop(held);
        for event in &events {
            self.received += 1;
            let line = match event {
                Value::String(text) => text.clone(),
                event if call.flag("jq").contains("| {") => projected(event).to_string(),
                event => event.to_string(),
            };
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        let sources = script["source"].as_array().map_or(&[][..], Vec::as_slice);
        for state in sources.iter().skip(self.sources).filter_map(Value::as_str) {
            say(&format!("[source] feishu-websocket: {state}"));
        }
        self.sources = sources.len();
        script
    }
}

/// What the product's own projection leaves of an event.
fn projected(event: &Value) -> Value {
    let first = |names: &[&str]| {
        names
            .iter()
            .map(|name| &event[*name])
            .find(|value| !value.is_null())
            .cloned()
            .unwrap_or(Value::Null)
    };
    json!({
        "attachment_count": event["attachment_count"].as_i64().unwrap_or(0),
        "chat_id": event["chat_id"], "content": event["content"], "create_time": event["create_time"],
        "event_id": first(&["event_id", "message_id", "id"]), "mentions": event["mentions"],
        "message_id": first(&["message_id", "id"]), "parent_id": first(&["parent_id", "reply_to"]), "root_id": event["root_id"],
        "schema_version": "lark_event_inbox_event_v0", "sender_id": event["sender_id"], "sender_type": event["sender_type"],
        "thread_id": event["thread_id"],
    })
}

pub(crate) fn status(state: &State, call: &Call) -> Result<Answer, Failure> {
    let consumers: Vec<&Value> = state.0["consumers"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let is_orphan = state.0["bus"]["orphan"] == json!(true);
    let word = if is_orphan { "orphan" } else { "running" };
    let rows: Vec<Value> = consumers
        .iter()
        .map(|row| json!({"pid": row["pid"], "event_key": row["event_key"]}))
        .collect();
    let app = json!({"app_id": "cli_x", "status": word, "running": !is_orphan, "pid": 1, "uptime_sec": 1, "active_consumers": rows.len(), "consumers": rows});
    let rc = if is_orphan && call.has("fail-on-orphan") {
        2
    } else {
        0
    };
    Ok(Answer {
        rc,
        ..Answer::bare(&json!({"apps": [app]}))
    })
}

pub(crate) fn stop(state: &mut State, _call: &Call) -> Result<Answer, Failure> {
    let attached = !state.list("consumers").is_empty();
    let word = if attached { "refused" } else { "stopped" };
    Ok(Answer::bare(
        &json!({"results": [{"app_id": "cli_x", "status": word, "pid": 1}]}),
    ))
}
