//! Goals with many todos: more open ones than one source can hold (docs/spec/kernel.md 6.4), more finished ones than one
//! transaction takes.

use crate::support::world::{GOAL, World};

const OPEN: i64 = 30_000;
const DONE: i64 = 2_500;

/// Copies the one stored todo, as if it had been added this often.
fn multiply(world: &World, times: i64) {
    let store = world.store();
    let copy = "INSERT INTO todos(goal_id,todo_id,revision,role,status,priority_rank,append_seq,claimed_by,archive_state,body_json)
                WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i<?1)
                SELECT goal_id, printf('todo_%012d',i), 1, role, status, priority_rank, append_seq+i, claimed_by, archive_state,
                  json_set(body_json,'$.todo_id',printf('todo_%012d',i),'$.evidence',printf('%.500c','e')) FROM todos, n";
    store.execute(copy, [times]).expect("copies");
    store
        .execute("UPDATE todo_counts SET n=?1 WHERE n>0", [times])
        .expect("counts");
    store
        .execute("UPDATE goal_heads SET todo_seq=?1", [times + 2])
        .expect("a number");
}

#[test]
fn more_open_todos_than_a_source_holds_stop_no_turn() {
    let (world, todo) = World::with_todo();
    multiply(&world, OPEN);
    let decision = world.decide(&[]);
    let summary = &decision["agent_todo_summary"];
    assert_eq!(decision["effective_action"], "normal_run");
    assert_eq!(decision["selected_todo"]["todo_id"], todo.as_str());
    assert_eq!(summary["open_count"], OPEN);
    assert_eq!(
        summary["first_open_items"].as_array().expect("items").len(),
        3
    );
    let listed = summary["items"].as_array().expect("items").len() as i64;
    assert_eq!(summary["listing"]["items_omitted"], OPEN - listed);
    let frontier = &decision["goal_frontier_projection"]["remaining_advancement_frontier"];
    assert_eq!(frontier["unclaimed_advancement_count"], OPEN);
    let plan = world
        .run(&["turn", "plan", "--goal-id", GOAL, "--agent-id", "lane-a"])
        .packet();
    assert_eq!(plan["route"]["kind"], "ready_for_host");
    assert_eq!(world.turn("turn-1").packet()["status"], "committed");
    assert_eq!(world.spent(), 1);
    let status = world.run(&["status", "--goal-id", GOAL]).packet();
    let goal = &status["goals"][0];
    let shown = goal["agent_todos"].as_array().expect("lines").len() as i64;
    assert_eq!(goal["todos_omitted"]["agent"], OPEN - shown);
}

#[test]
fn many_finished_todos_are_put_away_by_one_command_in_several_transactions() {
    let (world, todo) = World::with_todo();
    let complete = ["todo", "complete", "--goal-id", GOAL, "--todo-id", &todo];
    world
        .run(&[&complete[..], &["--agent-id", "lane-a"]].concat())
        .packet();
    multiply(&world, DONE);
    let archive = ["todo", "archive-completed", "--goal-id", GOAL];
    let preview = world.run(&[&archive[..], &["--dry-run"]].concat()).packet();
    assert_eq!(preview["archived_todo_ids_omitted"], DONE - 1_000);
    let before = revision(&world);
    let done = world.run(&archive).packet();
    assert_eq!(done["changed"], true);
    assert_eq!(
        done["archived_todo_ids"].as_array().expect("ids").len(),
        1_000
    );
    assert_eq!(done["archived_todo_ids_omitted"], DONE - 1_000);
    assert_eq!(revision(&world), before + 3);
    let left = "SELECT COUNT(*) FROM todos WHERE archive_state='active'";
    let left: i64 = world
        .store()
        .query_row(left, [], |row| row.get(0))
        .expect("a count");
    assert_eq!(left, 0);
    assert_eq!(world.run(&archive).packet()["changed"], false);
}

fn revision(world: &World) -> i64 {
    let sql = "SELECT revision FROM goal_heads";
    world
        .store()
        .query_row(sql, [], |row| row.get(0))
        .expect("a head")
}
