//! What the running program is: the identity an extension is verified for.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::contract::digest;
use crate::contract::extension::Entrypoint;

/// Reads the whole identity of the running program: its place, its file and its bytes.
pub fn probe() -> io::Result<Entrypoint> {
    let path = std::env::current_exe()?;
    let bytes = std::fs::read(&path)?;
    let meta = File::open(&path)?.metadata()?;
    let content = digest::content_digest(&bytes).hex();
    let place = path.to_string_lossy();
    let numbers = [
        meta.dev().to_string(),
        meta.ino().to_string(),
        meta.size().to_string(),
        modified(&meta),
    ];
    let mut parts = vec![place.as_ref()];
    parts.extend(numbers.iter().map(String::as_str));
    parts.push(&content);
    Ok(Entrypoint {
        identity: digest::nul_joined(&parts).to_string(),
        facts: facts_of(&path, &meta),
    })
}

/// Returns where the running program is.
pub fn path() -> Option<std::path::PathBuf> {
    std::env::current_exe().ok()
}

/// Reads the facts that hold as long as nobody touched the file; far cheaper than its bytes.
pub fn facts() -> io::Result<String> {
    let path = std::env::current_exe()?;
    let meta = std::fs::metadata(&path)?;
    Ok(facts_of(&path, &meta))
}

fn facts_of(path: &Path, meta: &Metadata) -> String {
    let numbers = [
        meta.dev().to_string(),
        meta.ino().to_string(),
        meta.size().to_string(),
        modified(meta),
        // The change time moves with every write, whatever the modification time was set to.
        format!("{}.{}", meta.ctime(), meta.ctime_nsec()),
    ];
    let place = path.to_string_lossy();
    let mut parts = vec![place.as_ref()];
    parts.extend(numbers.iter().map(String::as_str));
    digest::nul_joined(&parts).to_string()
}

fn modified(meta: &Metadata) -> String {
    format!("{}.{}", meta.mtime(), meta.mtime_nsec())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_facts_of_an_untouched_program_stay() {
        let first = super::probe().expect("this program");
        assert_eq!(Some(first.facts), super::facts().ok());
    }
}
