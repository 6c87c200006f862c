//! Empty folders for provider calls: owner-only, outside the project, gone with all that is in them.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// Makes one folder below the system's temporary one.
pub fn folder() -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("loopx-call-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}
