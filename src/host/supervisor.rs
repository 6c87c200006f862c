//! The supervisors of user services: launchd and systemd, by their own programs.

use std::path::Path;
use std::time::Duration;

use crate::contract::inbox::collector::Supervisor;
use crate::port::supervisor::ServiceSupervisor;
use crate::process::{self, Ending, Invocation};

/// The supervisor of this user.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UserSupervisor;

const DEADLINE: Duration = Duration::from_secs(30);

impl ServiceSupervisor for UserSupervisor {
    fn start(&self, kind: Supervisor, name: &str, file: &Path) -> bool {
        match kind {
            Supervisor::Launchd => {
                let domain = domain();
                let service = format!("{domain}/{name}");
                // A service that is not loaded cannot be taken out; that is no failure.
                let _ = succeeds("launchctl", &["bootout", &service]);
                file.to_str()
                    .is_some_and(|file| succeeds("launchctl", &["bootstrap", &domain, file]))
                    && succeeds("launchctl", &["kickstart", "-k", &service])
            }
            Supervisor::Systemd => {
                succeeds("systemctl", &["--user", "daemon-reload"])
                    && succeeds("systemctl", &["--user", "enable", "--now", name])
            }
        }
    }

    fn is_active(&self, kind: Supervisor, name: &str) -> bool {
        match kind {
            Supervisor::Launchd => {
                let service = format!("{}/{name}", domain());
                output("launchctl", &["print", &service])
                    .is_some_and(|text| text.contains("state = running"))
            }
            Supervisor::Systemd => succeeds("systemctl", &["--user", "is-active", name]),
        }
    }
}

fn domain() -> String {
    format!("gui/{}", process::user_id())
}

fn succeeds(program: &str, words: &[&str]) -> bool {
    output(program, words).is_some()
}

fn output(program: &str, words: &[&str]) -> Option<String> {
    let call = Invocation::new(program, words.iter().copied())
        .deadline(DEADLINE)
        .max_output(1 << 20);
    let finished = process::run(&call).ok()?;
    (finished.ending == Ending::Exit(0))
        .then(|| String::from_utf8_lossy(&finished.stdout).into_owned())
}
