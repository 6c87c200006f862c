//! Todo rows: one record each, ordered by priority and by when they were added.
//!
//! The unfinished ones are found through an index and the finished ones are only counted, so a decision costs the same on
//! ten rows and on a million.

use rusqlite::{OptionalExtension, params};

use crate::contract::digest;
use crate::contract::ids::{GoalId, TodoId};
use crate::contract::time::Timestamp;
use crate::contract::todo::{Role, Status, Todo};
use crate::store::StoreError;
use crate::store::rows::{Rows, micros, object, stored_text};
use crate::store::state::{EventRow, GoalTx};

/// A stored todo with its own revision.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTodo {
    /// The record.
    pub todo: Todo,
    /// Counts its changes.
    pub revision: i64,
}

impl Rows<'_> {
    /// One todo.
    pub fn todo(&self, goal: &GoalId, id: &TodoId) -> Result<Option<StoredTodo>, StoreError> {
        let sql = "SELECT body_json,revision FROM todos WHERE goal_id=?1 AND todo_id=?2";
        let found = self
            .0
            .query_row(sql, params![goal.as_str(), id.as_str()], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            });
        let Some((text, revision)) = found.optional()? else {
            return Ok(None);
        };
        Ok(Some(StoredTodo {
            todo: parse(&text)?,
            revision,
        }))
    }

    /// The open, blocked and deferred todos of one role in selection order: priority, then the order of adding.
    ///
    /// With `Role::Agent` these are the runnable candidates and the blocked ones; with `Role::User` the open gates and
    /// actions. `Todo::status`, `Todo::rank` (0 is P0) and `Todo::is_user_gate` tell them apart.
    pub fn unfinished(&self, goal: &GoalId, role: Role) -> Result<Vec<Todo>, StoreError> {
        let sql = "SELECT body_json FROM todos WHERE goal_id=?1 AND role=?2 AND status IN('open','blocked','deferred')
                   AND archive_state='active' ORDER BY priority_rank, append_seq";
        self.todos(sql, params![goal.as_str(), role.as_str()])
    }

    /// Every todo of a goal in the order of adding.
    pub fn all_todos(&self, goal: &GoalId) -> Result<Vec<Todo>, StoreError> {
        self.todos(
            "SELECT body_json FROM todos WHERE goal_id=?1 ORDER BY append_seq",
            params![goal.as_str()],
        )
    }

    /// The todos of one role completed in `[start, end)`, oldest first; archived ones included.
    pub fn done_between(
        &self,
        goal: &GoalId,
        role: Role,
        window: (Timestamp, Timestamp),
    ) -> Result<Vec<Todo>, StoreError> {
        let sql = "SELECT body_json FROM todos WHERE goal_id=?1 AND role=?2 AND completed_us>=?3 AND completed_us<?4
                   ORDER BY completed_us, append_seq";
        self.todos(
            sql,
            params![
                goal.as_str(),
                role.as_str(),
                micros(window.0),
                micros(window.1)
            ],
        )
    }

    /// The agent todo completed last, by the order of events.
    pub fn last_done(&self, goal: &GoalId) -> Result<Option<Todo>, StoreError> {
        let sql = "SELECT body_json FROM todos WHERE goal_id=?1 AND role='agent' AND completed_seq IS NOT NULL
                   ORDER BY completed_seq DESC LIMIT 1";
        Ok(self.todos(sql, params![goal.as_str()])?.pop())
    }

    /// The agent todo with the latest instant of completion.
    pub fn latest_done(&self, goal: &GoalId) -> Result<Option<Todo>, StoreError> {
        let sql = "SELECT body_json FROM todos WHERE goal_id=?1 AND role='agent' AND completed_us IS NOT NULL
                   ORDER BY completed_us DESC LIMIT 1";
        Ok(self.todos(sql, params![goal.as_str()])?.pop())
    }

    /// The number the next todo of a goal gets.
    pub fn next_todo_number(&self, goal: &GoalId) -> Result<u64, StoreError> {
        let sql = "SELECT todo_seq FROM goal_heads WHERE goal_id=?1";
        let seq: Option<i64> = self
            .0
            .query_row(sql, [goal.as_str()], |row| row.get(0))
            .optional()?;
        Ok(u64::try_from(seq.unwrap_or(0) + 1).unwrap_or(1))
    }

    /// How many todos of a role have a status.
    pub fn todo_count(&self, goal: &GoalId, role: Role, status: Status) -> Result<i64, StoreError> {
        let sql = "SELECT n FROM todo_counts WHERE goal_id=?1 AND role=?2 AND status=?3";
        let count = self.0.query_row(
            sql,
            params![goal.as_str(), role.as_str(), status.as_str()],
            |row| row.get(0),
        );
        Ok(count.optional()?.unwrap_or(0))
    }

    /// The goals whose counts are not those of their todos; answers are given from the counts.
    pub fn miscounted_goals(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT goal_id FROM (SELECT goal_id,role,status,n FROM todo_counts WHERE n<>0
                     EXCEPT SELECT goal_id,role,status,COUNT(*) FROM todos WHERE archive_state='active' GROUP BY 1,2,3)
                   UNION SELECT goal_id FROM (SELECT goal_id,role,status,COUNT(*) FROM todos WHERE archive_state='active' GROUP BY 1,2,3
                     EXCEPT SELECT goal_id,role,status,n FROM todo_counts)";
        let mut statement = self.0.prepare(sql)?;
        let goals = statement.query_map([], |row| row.get(0))?;
        Ok(goals.collect::<Result<_, _>>()?)
    }

    /// The next done todos of a goal that are not archived yet, after a place in the order of adding, and the last place.
    pub fn done_and_active(
        &self,
        goal: &GoalId,
        (after, limit): (i64, usize),
    ) -> Result<(Vec<Todo>, i64), StoreError> {
        let sql = "SELECT body_json,append_seq FROM todos INDEXED BY todos_finished WHERE goal_id=?1 AND status='done'
                   AND archive_state='active' AND append_seq>?2 ORDER BY append_seq LIMIT ?3";
        let mut statement = self.0.prepare(sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![goal.as_str(), after, limit], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        let mut found = (Vec::new(), after);
        for row in rows {
            let (text, seq) = row?;
            found.0.push(parse(&text)?);
            found.1 = seq;
        }
        Ok(found)
    }

    fn todos(&self, sql: &str, with: &[&dyn rusqlite::ToSql]) -> Result<Vec<Todo>, StoreError> {
        let mut statement = self.0.prepare(sql)?;
        let rows = statement.query_map(with, |row| row.get::<_, String>(0))?;
        rows.map(|text| parse(&text?)).collect()
    }
}

impl GoalTx<'_> {
    /// The id a new todo of these words gets, and its place in the order.
    pub fn new_todo_id(&mut self, role: Role, words: &str) -> Result<(TodoId, i64), StoreError> {
        let seq = self.next_todo_seq();
        let index = u64::try_from(seq).unwrap_or(0);
        let id = TodoId::new(format!(
            "todo_{}",
            digest::todo_suffix(role.as_str(), "", index, words)
        ));
        let id = id.ok_or(StoreError::Corrupt("a generated todo id has another form"))?;
        Ok((id, seq))
    }

    /// Adds a todo.
    pub fn insert_todo(&self, todo: &Todo, seq: i64) -> Result<(), StoreError> {
        let (text, _) = stored_text(&todo.to_value())?;
        self.connection().execute(
            "INSERT INTO todos(goal_id,todo_id,revision,role,status,priority_rank,append_seq,claimed_by,archive_state,body_json)
             VALUES(?1,?2,1,?3,?4,?5,?6,?7,?8,?9)",
            params![
                self.goal().as_str(),
                todo.id().as_str(),
                todo.role().as_str(),
                todo.status().as_str(),
                todo.rank(),
                seq,
                todo.claimed_by(),
                archive_state(todo),
                text
            ],
        )?;
        self.count(todo, 1)
    }

    /// Replaces a todo's record. `completed` is the event of a new completion: its instant is unique within the goal.
    pub fn update_todo(
        &self,
        before: &Todo,
        after: &Todo,
        completed: Option<&EventRow>,
    ) -> Result<(), StoreError> {
        let (text, _) = stored_text(&after.to_value())?;
        self.connection().execute(
            "UPDATE todos SET revision=revision+1, status=?3, priority_rank=?4, claimed_by=?5, archive_state=?6, body_json=?7,
               completed_us=COALESCE(?8,completed_us), completed_seq=COALESCE(?9,completed_seq) WHERE goal_id=?1 AND todo_id=?2",
            params![
                self.goal().as_str(),
                after.id().as_str(),
                after.status().as_str(),
                after.rank(),
                after.claimed_by(),
                archive_state(after),
                text,
                completed.map(|event| micros(event.recorded_at)),
                completed.map(|event| event.seq),
            ],
        )?;
        if after.status() != Status::Done && before.status() == Status::Done {
            self.connection().execute(
                "UPDATE todos SET completed_us=NULL, completed_seq=NULL WHERE goal_id=?1 AND todo_id=?2",
                params![self.goal().as_str(), after.id().as_str()],
            )?;
        }
        self.count(before, -1)?;
        self.count(after, 1)
    }

    /// Takes the counts of this goal from its todos again.
    pub fn recount_todos(&self) -> Result<(), StoreError> {
        let goal = self.goal().as_str();
        self.connection()
            .execute("DELETE FROM todo_counts WHERE goal_id=?1", [goal])?;
        self.connection().execute(
            "INSERT INTO todo_counts(goal_id,role,status,n)
             SELECT goal_id,role,status,COUNT(*) FROM todos WHERE goal_id=?1 AND archive_state='active' GROUP BY 1,2,3",
            [goal],
        )?;
        Ok(())
    }

    fn count(&self, todo: &Todo, by: i64) -> Result<(), StoreError> {
        if todo.is_archived() {
            return Ok(());
        }
        self.connection().execute(
            "INSERT INTO todo_counts(goal_id,role,status,n) VALUES(?1,?2,?3,?4)
             ON CONFLICT(goal_id,role,status) DO UPDATE SET n=n+excluded.n",
            params![
                self.goal().as_str(),
                todo.role().as_str(),
                todo.status().as_str(),
                by
            ],
        )?;
        Ok(())
    }
}

fn archive_state(todo: &Todo) -> &'static str {
    if todo.is_archived() {
        "archived"
    } else {
        "active"
    }
}

fn parse(text: &str) -> Result<Todo, StoreError> {
    Todo::parse(object(text)?).ok_or(StoreError::Corrupt("a todo row holds no todo"))
}
