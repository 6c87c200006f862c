//! The files of a report on disk.

use std::io;
use std::path::{Path, PathBuf};

use super::compose::Composed;
use super::setting::Setting;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::periodic_report::artifact::RendererAdapter;
use crate::contract::time::Window;
use crate::store::report_folder::{self, Latest, Published, ReportFile};
use crate::workspace::env;

const BUNDLE_FILE: &str = "bundle.json";

/// Where a report is to go.
pub(super) struct Target<'a> {
    pub out: Option<&'a Path>,
    pub setting: &'a Setting,
    pub window: Window,
}

/// Where a report went, and whether anything was written.
pub(super) struct Place {
    pub out: String,
    pub already_generated: bool,
    pub state_written: bool,
}

/// Returns the file an artifact is written to.
pub(super) const fn file_name(adapter: RendererAdapter) -> &'static str {
    match adapter {
        RendererAdapter::Markdown => "report.md",
        RendererAdapter::Html => "report.html",
    }
}

/// Publishes a report in the folder asked for, or in the project's own.
pub(super) fn publish(
    project: &Path,
    target: &Target<'_>,
    composed: &Composed,
) -> Result<Place, Refusal> {
    let mut files: Vec<ReportFile<'_>> = composed
        .artifacts
        .iter()
        .map(|(adapter, artifact)| ReportFile {
            name: file_name(*adapter),
            bytes: artifact.content.as_bytes(),
        })
        .collect();
    files.push(ReportFile {
        name: BUNDLE_FILE,
        bytes: composed.bundle.as_bytes(),
    });
    match target.out {
        Some(out) => {
            let place = given_place(out)?;
            let published = report_folder::publish(&place, &files).map_err(|_| unwritable())?;
            let out = shown(project, &place);
            settle(published, Latest::Unchanged, out)
        }
        None => {
            let name = default_name(target, &composed.generation_id)?;
            let reports = report_folder::hold_default(project).map_err(|_| unwritable())?;
            let place = reports.folder().join(&name);
            let published = report_folder::publish(&place, &files).map_err(|_| unwritable())?;
            let latest = match published {
                Published::Conflict => Latest::Unchanged,
                _ => report_folder::point_latest(reports.folder(), &name)
                    .map_err(|_| unwritable())?,
            };
            let out = shown(project, &place);
            settle(published, latest, out)
        }
    }
}

fn settle(published: Published, latest: Latest, out: String) -> Result<Place, Refusal> {
    match published {
        Published::Conflict => Err(Refusal::new(
            ErrorCode::ReportOutConflict,
            "something else is at the report's folder and was left as it is; name another folder with --out or move it away",
        )),
        Published::AlreadyThere => Ok(Place {
            out,
            already_generated: true,
            state_written: latest == Latest::Moved,
        }),
        Published::Created => Ok(Place {
            out,
            already_generated: false,
            state_written: true,
        }),
    }
}

fn given_place(out: &Path) -> Result<PathBuf, Refusal> {
    let here: io::Result<PathBuf> = std::env::current_dir();
    let place = here.map(|here| here.join(env::expand_home(out)));
    place.map_err(|_| unwritable())
}

/// The end of the window as a local date, and the start of the generation's id.
fn default_name(target: &Target<'_>, generation_id: &str) -> Result<String, Refusal> {
    let day = target
        .setting
        .zone
        .day_of(target.window.end_at())
        .ok_or_else(unwritable)?;
    let id = generation_id.rsplit('_').next().unwrap_or(generation_id);
    Ok(format!("{day}-{}", &id[..id.len().min(8)]))
}

/// A place in the project by its way from there, any other by its last name alone.
///
/// What counts is where the folder really is: dots and links in the way lead elsewhere.
fn shown(project: &Path, place: &Path) -> String {
    let real = std::fs::canonicalize(place);
    let root = std::fs::canonicalize(project);
    let way = match (&real, &root) {
        (Ok(real), Ok(root)) => real.strip_prefix(root).ok(),
        _ => None,
    };
    let way = way
        .filter(|way| !way.as_os_str().is_empty())
        .map(Path::to_path_buf);
    let last = || {
        let named = real.as_deref().unwrap_or(place);
        named.file_name().map(PathBuf::from)
    };
    way.or_else(last)
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn unwritable() -> Refusal {
    Refusal::new(
        ErrorCode::ReportOutUnwritable,
        "the report's folder cannot be written, or a link stands in its way; nothing was published. Name another folder with --out",
    )
}
