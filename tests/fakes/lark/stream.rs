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
use super::jq;
use super::state::{Folder, State};

const POLL: Duration = Duration::from_millis(10);

struct Consumer<'a> {
    folder: &'a Folder,
    key: &'a str,
    received: u64,
    sources: usize,
    is_quiet: bool,
}

pub(crate) fn consume(folder: &Folder, call: &Call) -> ExitCode {
    if call.has("help") {
        return Answer::text("<help>\n").print();
    }
    let bound = match call.has("timeout") {
        true => duration(call.flag("timeout")),
        false => Some(None),
    };
    let Some(timeout) = bound.filter(|_| is_understood(call)) else {
        return Answer::failed(&Failure::argument(), "").print();
    };
    if call.has("dry-run") {
        let held = folder.lock();
        return decision(&held, call).print();
    }
    let is_unbounded = timeout.is_none() && !call.has("max-events");
    let ends_at_once = is_unbounded && std::io::read_to_string(std::io::stdin()).is_ok();
    let stop = signals();
    let mut consumer = Consumer {
        folder,
        key: &call.argument,
        received: 0,
        sources: 0,
        is_quiet: call.has("quiet"),
    };
    if let Some(refused) = blocked(folder, call, ends_at_once) {
        return refused.print();
    }
    let script = consumer.attach(call);
    if let Some(refusal) = script["refuse"].as_object() {
        return refuse(refusal);
    }
    consumer.say(&format!("[event] consuming as {} (app)", call.profile));
    consumer.say(&format!(
        "[event] listening for events (key={})…",
        call.argument
    ));
    consumer.say("[event] to stop gracefully: …");
    if script["ready"] != json!(false) {
        consumer.say(&format!("[event] ready event_key={}", call.argument));
    }
    for line in script["noise"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        consumer.say(line);
    }
    let most = call.flag("max-events").parse::<u64>().unwrap_or(u64::MAX);
    let started = Instant::now();
    let (reason, rc) = loop {
        let script = consumer.work(call, most);
        if consumer.received >= most {
            break ("limit".to_owned(), 0);
        }
        if ends_at_once {
            break ("signal".to_owned(), 0);
        }
        if stop.try_recv().is_ok() {
            if script["ready"] == json!(false) {
                // Asked to end while it starts: no exit line, and the error of a start that was given up.
                consumer.detach();
                return Answer::failed(&Failure::local("internal", "unknown", 5), "bot").print();
            }
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
        consumer.say(&format!(
            "[event] exited \u{2014} received {} event(s) in 1s (reason: {reason})",
            consumer.received
        ));
    }
    ExitCode::from(rc)
}

/// The keys an application can listen to.
const KEYS: [&str; 2] = ["im.message.receive_v1", CARD_KEY];
const CARD_KEY: &str = "card.action.trigger";

/// Looks at key and program; a program is not run here, only its brackets are counted.
fn is_understood(call: &Call) -> bool {
    let count = |sign: char| call.flag("jq").matches(sign).count();
    let is_whole = [('(', ')'), ('{', '}'), ('[', ']')]
        .iter()
        .all(|(open, close)| count(*open) == count(*close));
    KEYS.contains(&call.argument.as_str()) && is_whole && call.identity() == "bot"
}

/// What stands in the way before the consumer is attached.
fn blocked(folder: &Folder, call: &Call, ends_at_once: bool) -> Option<Answer> {
    let held = folder.lock();
    let failed = |failure: &Failure| Some(Answer::failed(failure, "bot"));
    let bus = &held.0["bus"];
    if bus["orphan"] == json!(true) || (ends_at_once && bus["running"] != json!(true)) {
        return failed(&Failure::local("internal", "unknown", 5));
    }
    let is_alive = |row: &Value| std::path::Path::new(&format!("/proc/{}", row["pid"])).exists();
    let rows = held.0["consumers"].as_array().into_iter().flatten();
    let has_other = rows.into_iter().any(|row| {
        row["event_key"] == CARD_KEY && row["profile"] == call.profile.as_str() && is_alive(row)
    });
    if call.argument == CARD_KEY && has_other {
        say("[event] consuming");
        return failed(&Failure::local("validation", "failed_precondition", 2));
    }
    None
}

/// What a start would meet, without starting.
fn decision(state: &State, call: &Call) -> Answer {
    let is_blocked = state.0["streams"][&call.argument]["refuse"].is_object();
    let condition = |name: &str| json!({"name": name, "status": "ok"});
    let mut published = condition("console_event_published");
    if is_blocked {
        for (name, value) in [
            ("status", "blocked"),
            ("detail", "<detail>"),
            ("subtype", "failed_precondition"),
            ("hint", "<hint>"),
        ] {
            published[name] = json!(value);
        }
    }
    let decision = json!({"event_key": call.argument, "domain": "im", "identity": "bot", "status": if is_blocked { "blocked" } else { "ready" },
        "params": {}, "scope": call.argument, "preconditions": [condition("credentials_available"), published, condition("scopes_granted")],
        "would_read": ["local_bus_probe", "app_metadata_preflight"],
        "would_write": ["start_or_reuse_local_bus", "register_consumer", "open_event_stream"]});
    Answer::bare(
        &json!({"ok": true, "identity": "bot", "dry_run": true, "data": {"decision": decision}}),
    )
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
        Some("authorization") => Failure::missing_scopes(&["im:message.p2p_msg:readonly"]),
        Some("config") => Failure::code(20_002),
        Some("internal") => Failure::local("internal", "unknown", 5),
        Some("usage") => Failure::local("validation", "invalid_argument", 2),
        _ => Failure::local("validation", "failed_precondition", 2),
    };
    Answer::failed(&failure, "bot").print()
}

impl Consumer<'_> {
    fn say(&self, line: &str) {
        if !self.is_quiet {
            say(line);
        }
    }

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
    fn work(&mut self, call: &Call, most: u64) -> Value {
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
            if self.received >= most {
                break;
            }
            let printed = match (event, call.flag("jq")) {
                (Value::String(text), _) => Ok(Some(text.clone())),
                (event, "") => Ok(Some(event.to_string())),
                (event, program) => {
                    jq::first(program, event).map(|output| output.map(|value| value.to_string()))
                }
            };
            match printed {
                Ok(Some(line)) => {
                    self.received += 1;
                    let _ = writeln!(std::io::stdout(), "{line}");
                }
                Ok(None) => {}
                Err(()) => self.say("WARN: jq: the program failed on an event"),
            }
        }
        let sources = script["source"].as_array().map_or(&[][..], Vec::as_slice);
        for state in sources.iter().skip(self.sources).filter_map(Value::as_str) {
            self.say(&format!("[source] feishu-websocket: {state}"));
        }
        self.sources = sources.len();
        script
    }
}

fn app_id(state: &State, call: &Call) -> Value {
    state
        .profile(&call.profile)
        .map_or(Value::Null, |row| row["app_id"].clone())
}

/// The local bus and who is attached to it: what is nothing is left out.
pub(crate) fn status(state: &State, call: &Call) -> Result<Answer, Failure> {
    let bus = &state.0["bus"];
    let is_orphan = bus["orphan"] == json!(true);
    let mut app = json!({"app_id": app_id(state, call), "status": "running", "running": true, "pid": 1, "uptime_sec": 1});
    if bus["running"] == json!(false) {
        app = json!({"app_id": app["app_id"], "status": "not_running", "running": false});
    } else if is_orphan {
        app = json!({"app_id": app["app_id"], "status": "orphan", "running": false, "pid": 1, "issue": "<issue>",
            "suggested_action": "<suggested_action>"});
    } else {
        let consumers = state.0["consumers"].as_array().into_iter().flatten();
        let row = |row: &Value| json!({"pid": row["pid"], "event_key": row["event_key"], "subscription_id": row["event_key"], "received": 1, "dropped": 0});
        let rows: Vec<Value> = consumers.map(row).collect();
        if !rows.is_empty() {
            app["active_consumers"] = json!(rows.len());
            app["consumers"] = json!(rows);
        }
    }
    let rc = u8::from(is_orphan && call.has("fail-on-orphan")) * 2;
    Ok(Answer {
        rc,
        ..Answer::bare(&json!({"apps": [app]}))
    })
}

pub(crate) fn stop(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    let is_attached = !state.list("consumers").is_empty() && !call.has("force");
    let mut row = json!({"app_id": app_id(state, call), "status": "stopped", "pid": 1});
    if is_attached {
        row["status"] = json!("refused");
        row["reason"] = json!("<reason>");
    }
    Ok(Answer::bare(&json!({"results": [row]})))
}
