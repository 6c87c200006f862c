//! The text of the service that keeps a collector running, for the two supervisors. Same input, same bytes.

use crate::contract::inbox::collector::Supervisor;

/// What a service starts.
#[derive(Clone, Debug)]
pub struct ServiceSpec<'a> {
    pub name: &'a str,
    pub argv: Vec<String>,
    pub project: &'a str,
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// Writes the service file.
pub fn render(supervisor: Supervisor, spec: &ServiceSpec<'_>) -> String {
    match supervisor {
        Supervisor::Launchd => launchd(spec),
        Supervisor::Systemd => systemd(spec),
    }
}

fn launchd(spec: &ServiceSpec<'_>) -> String {
    let arguments: String = spec
        .argv
        .iter()
        .map(|word| format!("    <string>{}</string>\n", xml(word)))
        .collect();
    let text = |name: &str, value: &str| {
        format!("  <key>{name}</key>\n  <string>{}</string>\n", xml(value))
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n{}  <key>ProgramArguments</key>\n  <array>\n{arguments}  </array>\n{}\
         \x20 <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <true/>\n  <key>ThrottleInterval</key>\n  <integer>5</integer>\n\
         {}{}</dict>\n</plist>\n",
        text("Label", spec.name),
        text("WorkingDirectory", spec.project),
        text("StandardOutPath", spec.stdout),
        text("StandardErrorPath", spec.stderr),
    )
}

fn systemd(spec: &ServiceSpec<'_>) -> String {
    let command: Vec<String> = spec.argv.iter().map(|word| quoted(word)).collect();
    format!(
        "[Unit]\nDescription=loopx collector {}\nAfter=network-online.target\n\n[Service]\nType=simple\nWorkingDirectory={}\n\
         ExecStart={}\nRestart=always\nRestartSec=5\nStandardOutput=append:{}\nStandardError=append:{}\n\n[Install]\nWantedBy=default.target\n",
        spec.name,
        escaped(spec.project),
        command.join(" "),
        escaped(spec.stdout),
        escaped(spec.stderr),
    )
}

fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    out
}

/// One word of a command line: specifiers and variables stand for themselves.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+,@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut out = String::from("\"");
    for character in word.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '%' => out.push_str("%%"),
            '$' => out.push_str("$$"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn escaped(path: &str) -> String {
    path.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ServiceSpec<'static> {
        ServiceSpec {
            name: "loopx-x",
            argv: ["/bin/loopx", "a b", "50%", "$x", "\"q\""]
                .map(str::to_owned)
                .to_vec(),
            project: "/p&q",
            stdout: "/out",
            stderr: "/err",
        }
    }

    #[test]
    fn a_unit_quotes_its_command() {
        let text = render(Supervisor::Systemd, &spec());
        assert!(text.contains("ExecStart=/bin/loopx \"a b\" \"50%%\" \"$$x\" \"\\\"q\\\"\"\n"));
        assert!(
            text.contains("Restart=always\nRestartSec=5\n")
                && text.ends_with("WantedBy=default.target\n")
        );
    }

    #[test]
    fn a_property_list_escapes_its_texts() {
        let text = render(Supervisor::Launchd, &spec());
        assert!(
            text.contains("<string>/p&amp;q</string>")
                && text.contains("<key>KeepAlive</key>\n  <true/>")
        );
        assert!(text.contains("<key>ThrottleInterval</key>\n  <integer>5</integer>"));
        assert!(text.contains("<string>$x</string>"));
    }
}
