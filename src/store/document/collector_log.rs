//! The log of a collector on disk: appended by the one run, turned over at a fixed size, followed by anybody.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::contract::inbox::collector_log::LogLine;
use crate::contract::inbox::words;
use crate::store::private_file;

/// The size at which the log is turned over; one older file is kept.
const MAX_BYTES: u64 = 1 << 20;

/// The log of one project's collector.
#[derive(Clone, Debug)]
pub struct CollectorLog {
    path: PathBuf,
}

impl CollectorLog {
    /// The log of a project.
    pub fn of_project(project: &Path) -> Self {
        Self {
            path: project.join(words::COLLECTOR_STATE).join("collector.log"),
        }
    }

    fn older(&self) -> PathBuf {
        self.path.with_extension("log.1")
    }

    /// Appends lines.
    pub fn append(&self, lines: &[LogLine]) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.to_value().to_string());
            text.push('\n');
        }
        if let Some(folder) = self.path.parent() {
            private_file::create_dir(folder)?;
        }
        let size = std::fs::symlink_metadata(&self.path).map_or(0, |meta| meta.len());
        if size + text.len() as u64 > MAX_BYTES {
            std::fs::rename(&self.path, self.older())?;
        }
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
            .open(&self.path)?;
        file.write_all(text.as_bytes())
    }

    /// The newest lines, oldest first, and a reader of what comes after them.
    pub fn tail(&self, count: usize) -> (Vec<LogLine>, Follower) {
        let mut follower = Follower {
            path: self.path.clone(),
            open: None,
            cut: String::new(),
        };
        let mut lines = Vec::new();
        if let Ok(file) = open(&self.older()) {
            lines.extend(
                BufReader::new(file)
                    .lines()
                    .map_while(Result::ok)
                    .filter_map(|line| LogLine::parse(&line)),
            );
        }
        lines.extend(follower.news());
        let skipped = lines.len().saturating_sub(count);
        (lines.split_off(skipped), follower)
    }
}

/// Reads what is appended to a log, also after it was cut or turned over.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    open: Option<(File, u64)>,
    /// The begin of a line whose end is not written yet.
    cut: String,
}

impl Follower {
    /// The lines since the last call. A log that is not there, or cannot be read now, has none.
    pub fn news(&mut self) -> Vec<LogLine> {
        let mut lines = Vec::new();
        self.drain(&mut lines);
        if self.is_replaced() {
            // What was still written to the old file was just read.
            self.cut.clear();
            self.open = open(&self.path).ok().map(|file| (file, 0));
            self.drain(&mut lines);
        }
        lines
    }

    fn is_replaced(&self) -> bool {
        let Ok(now) = std::fs::symlink_metadata(&self.path) else {
            return false;
        };
        match self.open.as_ref().map(|(file, _)| file.metadata()) {
            Some(Ok(known)) => (known.ino(), known.dev()) != (now.ino(), now.dev()),
            _ => true,
        }
    }

    fn drain(&mut self, lines: &mut Vec<LogLine>) {
        let Some((file, read)) = &mut self.open else {
            return;
        };
        let size = file.metadata().map_or(0, |meta| meta.len());
        if size < *read {
            *read = 0;
            self.cut.clear();
        }
        if size == *read || file.seek(SeekFrom::Start(*read)).is_err() {
            return;
        }
        let mut reader = BufReader::new(&*file);
        let mut bytes = Vec::new();
        while let Ok(count @ 1..) = reader.read_until(b'\n', &mut bytes) {
            *read += count as u64;
            let is_whole = bytes.ends_with(b"\n");
            self.cut.push_str(&String::from_utf8_lossy(&bytes));
            bytes.clear();
            if is_whole {
                lines.extend(LogLine::parse(self.cut.trim_end()));
                self.cut.clear();
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::inbox::collector_log::LogEvent;
    use crate::contract::time::Timestamp;

    fn line(count: u64) -> LogLine {
        LogLine {
            at: Timestamp::from_unix(1_789_000_000).expect("an instant"),
            event: LogEvent::Captured,
            code: None,
            count: Some(count),
        }
    }

    fn numbers(lines: &[LogLine]) -> Vec<u64> {
        lines.iter().filter_map(|line| line.count).collect()
    }

    #[test]
    fn a_follower_goes_on_over_a_cut_and_a_turned_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = CollectorLog::of_project(folder.path());
        let (none, mut follower) = log.tail(10);
        assert!(none.is_empty());
        log.append(&[line(1), line(2)]).expect("written");
        assert_eq!(numbers(&follower.news()), [1, 2]);
        std::fs::write(&log.path, "").expect("cut");
        assert!(follower.news().is_empty());
        log.append(&[line(3)]).expect("written");
        assert_eq!(numbers(&follower.news()), [3]);
        log.append(&[line(4)]).expect("written");
        std::fs::rename(&log.path, log.older()).expect("turned");
        log.append(&[line(5)]).expect("written");
        assert_eq!(numbers(&follower.news()), [4, 5]);
        assert_eq!(numbers(&log.tail(2).0), [4, 5]);
    }

    #[test]
    fn a_half_written_line_waits_and_a_foreign_one_is_not_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = CollectorLog::of_project(folder.path());
        log.append(&[line(1)]).expect("written");
        let (_, mut follower) = log.tail(0);
        let whole = format!("a private word\n{}\n", line(2).to_value());
        let (first, rest) = whole.split_at(40);
        for part in [first, rest] {
            let mut file = OpenOptions::new()
                .append(true)
                .open(&log.path)
                .expect("opened");
            file.write_all(part.as_bytes()).expect("written");
            let news = follower.news();
            assert_eq!(numbers(&news), if part == rest { vec![2] } else { vec![] });
        }
    }

    #[test]
    fn a_full_log_is_turned_over_and_stays_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = CollectorLog::of_project(folder.path());
        log.append(&[line(1)]).expect("written");
        let many = vec![line(2); 9000];
        log.append(&many).expect("written");
        log.append(&[line(3)]).expect("written");
        assert!(log.older().exists());
        assert!(private_file::is_owner_only(&log.path).expect("there"));
        assert_eq!(numbers(&log.tail(1).0), [3]);
    }
}
