//! A goal with more open todos than one source can hold still decides, plans and runs (docs/spec/kernel.md 6.4).

use super::world::{GOAL, World};

const OPEN: i64 = 30_000;

/// Copies the one stored todo, as if it had been added this often.
fn multiply(world: &World) {
    let store = world.store();
    let copy = "INSERT INTO todos(goal_id,todo_id,revision,role,status,priority_rank,append_seq,claimed_by,archive_state,body_json)
                WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i<?1)
                SELECT goal_id, printf('todo_%012d',i), 1, role, status, priority_rank, append_seq+i, claimed_by, archive_state,
                  json_set(body_json,'$.todo_id',printf('todo_%012d',i),'$.evidence',printf('%.500c','e')) FROM todos, n";
    store.execute(copy, [OPEN]).expect("copies");
    store
        .execute("UPDATE todo_counts SET n=?1", [OPEN])
        .expect("counts");
    store
        .execute("UPDATE goal_heads SET todo_seq=?1", [OPEN + 2])
        .expect("a number");
}

#[test]
fn more_open_todos_than_a_source_holds_stop_no_turn() {
    let (world, todo) = World::with_todo();
    multiply(&world);
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
