//! A settlement step over rows that contradict each other, or over a journal file that cannot be written: the Turn stays where it
//! was, and what already happened is told (docs/spec/kernel.md 10.3, 11.4).

use crate::support::world::{GOAL, World};

/// A Turn whose driver died at this point.
fn died_at(point: &str) -> World {
    let (world, _) = World::with_todo();
    let turn = world.turn("turn-1").env("LOOPX_FAILPOINT", point);
    assert_eq!(turn.prepared().run().code, None, "it dies at {point}");
    world
}

fn journal_row(world: &World) -> (String, String, String) {
    let sql = "SELECT status,completed_phases,journal_sha256 FROM turns";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    world.store().query_row(sql, [], read).expect("a Turn")
}

#[test]
fn rows_that_contradict_each_other_leave_the_turn_where_it_was() {
    for (damage, repair, code) in [
        (
            "CREATE TABLE kept AS SELECT * FROM writebacks; DELETE FROM writebacks;",
            "INSERT INTO writebacks SELECT * FROM kept;",
            "effect_outcome_unknown",
        ),
        (
            "CREATE TABLE kept AS SELECT * FROM writebacks; DELETE FROM writebacks;
             CREATE TABLE kept_runs AS SELECT * FROM runs; DELETE FROM runs;
             CREATE TABLE kept_events AS SELECT * FROM events WHERE event_kind='refresh_state';
             DELETE FROM events WHERE event_kind='refresh_state';
             INSERT INTO spends SELECT effect_id,goal_id,agent_id,1,'adapter',run_generated_at,0,event_id,'{}' FROM kept;",
            "DELETE FROM spends; INSERT INTO writebacks SELECT * FROM kept;
             INSERT INTO runs SELECT * FROM kept_runs; INSERT INTO events SELECT * FROM kept_events;
             DROP TABLE kept_runs; DROP TABLE kept_events;",
            "malformed_settlement_state",
        ),
        (
            "CREATE TABLE kept AS SELECT * FROM runs; DELETE FROM runs;",
            "INSERT INTO runs SELECT * FROM kept;",
            "writeback_missing",
        ),
    ] {
        let world = died_at("writeback_committed");
        let before = journal_row(&world);
        world.store().execute_batch(damage).expect(damage);
        for _ in 0..2 {
            let refused = world.turn("turn-1").refused(code);
            assert_eq!(refused["effects"]["quota_spent"], false);
            let after = journal_row(&world);
            assert_eq!((&after.0, &after.1), (&before.0, &before.1), "{code}");
        }
        world.store().execute_batch(repair).expect(repair);
        world
            .store()
            .execute_batch("DROP TABLE kept")
            .expect("a repair");
        // No flag is needed: the Turn never failed.
        assert_eq!(world.turn("turn-1").packet()["status"], "committed");
        assert_eq!((world.host_calls(), world.spent()), (1, 1));
    }
}

/// Writes the journal file that the driver had no time for.
fn bring_up_journal(world: &World) {
    let sql = "SELECT journal_json FROM turns";
    let read = |row: &rusqlite::Row<'_>| row.get(0);
    let text: String = world.store().query_row(sql, [], read).expect("a Turn");
    let key = world.turn_key();
    let name = key.strip_prefix("sha256:").expect("a digest");
    let turns = world.runtime().join("goals").join(GOAL).join("turns");
    std::fs::write(turns.join(format!("{name}.json")), text).expect("the journal");
}

/// The folder of the journals lies on a file system of its own that has no free block.
const NO_ROOM_FOR_JOURNALS: [&str; 5] = [
    "unshare",
    "-rm",
    "sh",
    "-c",
    r#"turns=$PWD/.loopx/runtime/goals/demo-goal/turns; disk=$PWD.disk; mkdir -p "$disk" && mount -t tmpfs -o size=1m tmpfs "$disk" \
       && cp -a "$turns/." "$disk/" && mount --bind "$disk" "$turns" || exit 77
       dd if=/dev/zero of="$disk/fill" bs=4k 2>/dev/null
       exec "$0" "$@""#,
];

#[test]
fn a_step_whose_journal_file_cannot_be_written_is_told_as_done() {
    for (point, effect, other) in [
        ("validation_stored", "state_written", "quota_spent"),
        ("writeback_committed", "quota_spent", "state_written"),
    ] {
        let world = died_at(point);
        bring_up_journal(&world);
        let run = world.turn("turn-1").prepared();
        let done = run.around(&NO_ROOM_FOR_JOURNALS).json_run();
        if done.code == Some(77) {
            return;
        }
        let packet = done.json();
        assert_eq!(packet["error_code"], "store_write_failed", "{packet}");
        assert_eq!(packet["journal_file"], "pending", "{packet}");
        assert_eq!(packet["effects"][effect], true, "{packet}");
        assert_eq!(packet["effects"][other], false, "{packet}");
        let again = world.turn("turn-1").packet();
        assert_eq!(again["status"], "committed", "{again}");
        assert_eq!(again["effects"][effect], false, "{again}");
        assert_eq!((world.host_calls(), world.spent()), (1, 1));
    }
}
