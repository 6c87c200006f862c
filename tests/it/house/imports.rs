//! Imports point one way.

use super::rooms::{FREE_CRATES, IMPURE_STD, PURE_ROOMS, ROOMS, Room};
use super::source::{self, Source};

/// Words that start a path without naming a crate: local types, variants, primitive types.
fn names_a_crate(first: &str, known: &[&str]) -> bool {
    known.contains(&first)
}

fn listed_crates() -> Vec<&'static str> {
    let mut all: Vec<&str> = ROOMS
        .iter()
        .flat_map(|room| room.crates.iter().copied())
        .collect();
    all.push("reqwest");
    all.push("tokio");
    all.sort_unstable();
    all.dedup();
    all
}

fn faults_of(source: &Source, room: &Room, crates: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    for path in &source.paths {
        let mut parts = path.split("::");
        let first = parts.next().unwrap_or("");
        if first == "crate" {
            let target = parts.next().unwrap_or("");
            let is_room = ROOMS.iter().any(|room| room.name == target);
            if is_room && target != room.name && !room.rooms.contains(&target) {
                faults.push(format!(
                    "{}: {} may not import {path}",
                    source.name, room.name
                ));
            }
        } else if names_a_crate(first, crates)
            && !FREE_CRATES.contains(&first)
            && !room.crates.contains(&first)
        {
            faults.push(format!("{}: {} may not use {path}", source.name, room.name));
        }
        let is_impure = IMPURE_STD.iter().any(|module| path.starts_with(module));
        if is_impure && PURE_ROOMS.contains(&room.name) {
            faults.push(format!(
                "{}: {} is pure and uses {path}",
                source.name, room.name
            ));
        }
    }
    faults
}

#[test]
fn every_room_imports_only_what_the_map_allows() {
    let crates = listed_crates();
    let mut faults = Vec::new();
    for source in source::all() {
        if source.name == "lib.rs" {
            continue;
        }
        match ROOMS.iter().find(|room| room.name == source.room()) {
            Some(room) => faults.extend(faults_of(&source, room, &crates)),
            None => faults.push(format!("{}: belongs to no room", source.name)),
        }
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn adapters_of_one_kind_do_not_know_each_other() {
    let mut faults = Vec::new();
    for source in source::all() {
        let mut parts = source.name.split('/');
        let (room, own) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        if !matches!(room, "provider" | "source" | "host") || own == "mod.rs" {
            continue;
        }
        let own = own.strip_suffix(".rs").unwrap_or(own);
        let prefix = format!("crate::{room}::");
        let foreign = source.paths.iter().filter(|path| {
            path.strip_prefix(&prefix)
                .and_then(|rest| rest.split("::").next())
                .is_some_and(|target| target != own)
        });
        faults.extend(foreign.map(|path| format!("{}: {path}", source.name)));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
