//! Rows that hold what they cannot hold, and files whose bytes were changed: said clearly, without a panic, a
//! backtrace or a hang, and whatever can go on beside them goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::place::{Dice, Ended, Place, attacks, ended};

const FILE: &str = "wonder: 1\nname: damaged\nnodes:\n  \
    big: {shell: {command: \"echo said; printf %9000s x\", timeout: 20s}, next: [{to: kid}]}\n  \
    kid: {workflow_call: {workflow: child}, next: [{to: ask}]}\n  \
    ask: {human_gate: {title: Go on?, timeout: 2h}, next: [{to: fin}]}\n  fin: {mock: {output: {ok: true}}}\n---\n\
    wonder: 1\nname: child\nnodes:\n  one: {mock: {output: {n: 1}}}\n";
const SOUND: &str = "wonder: 1\nname: sound\nnodes:\n  one: {mock: {output: {n: 1}}}\n";
const VALUES: [&str; 7] = ["X'00ff80'", "'zz'", "-9223372036854775808", "5", "1.5", "''", "'{\"a\":'"];
/// An answer that takes longer is a hang.
const PATIENCE: Duration = Duration::from_secs(30);

struct Damaging {
    place: Place,
    sound: String,
    run: String,
}

impl Damaging {
    /// A home with a run that waits and one that has ended, to be copied and damaged.
    fn new() -> Damaging {
        let place = Place::new();
        let sound = place.file("sound.yaml", SOUND);
        let file = place.file("damaged.yaml", FILE);
        assert_eq!(place.run(&["run", &sound]).code, Some(0));
        let run = place.json(&["run", &file], 3)["run"].as_str().expect("an id").to_owned();
        Damaging { place, sound, run }
    }

    fn copy(&self) -> std::path::PathBuf {
        let copy = self.place.dir.path().join("copy");
        drop(std::fs::remove_dir_all(&copy));
        std::fs::create_dir(&copy).expect("a directory");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&copy, private).expect("its permissions");
        std::fs::copy(self.place.database(), copy.join("wonder.db")).expect("a copy");
        copy
    }

    /// Says what it has to say, whatever it finds.
    fn ask(&self, home: &Path, arguments: &[&str], damage: &str) -> Ended {
        let began = Instant::now();
        let mut command = self.place.command(arguments);
        let answered = ended(command.env("WONDER_HOME", home).output().expect("it starts"));
        assert!(began.elapsed() < PATIENCE, "{damage}: {arguments:?} took {:?}", began.elapsed());
        let told = matches!(answered.code, Some(0..=7));
        let broken = answered.err.contains("panicked") || answered.err.contains("backtrace");
        assert!(told && !broken, "{damage}: {arguments:?}: {answered:#?}");
        answered
    }
}

/// Every column of every table, with the tables that only concern the damaged run marked.
fn columns(database: &Path) -> Vec<(String, String)> {
    let connection = Connection::open(database).expect("a database");
    let sql =
        "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'";
    let mut statement = connection.prepare(sql).expect("a query");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("tables");
    rows.collect::<Result<_, _>>().expect("columns")
}

/// False if SQLite itself does not take it.
fn damage(database: &Path, (table, column): &(String, String), value: &str) -> bool {
    let connection = Connection::open(database).expect("a database");
    let only = if table == "runs" { " WHERE workflow = 'damaged'" } else { "" };
    connection.execute(&format!("UPDATE OR IGNORE {table} SET {column} = {value}{only}"), []).unwrap_or(0) > 0
}

#[test]
fn a_row_with_a_wrong_value_is_told_and_the_other_runs_go_on() {
    let damaging = Damaging::new();
    let columns = columns(&damaging.place.database());
    let all = columns.len() * VALUES.len();
    let (mut damaged, many) = (0, attacks(columns.len(), all));
    for number in 0..many {
        // Every column, and with more attacks every value in each.
        let (column, value) =
            (&columns[number % columns.len()], VALUES[(number + number / columns.len()) % VALUES.len()]);
        let home = damaging.copy();
        if !damage(&home.join("wonder.db"), column, value) {
            continue;
        }
        damaged += 1;
        let what = format!("{}.{} = {value}", column.0, column.1);
        let listed = damaging.ask(&home, &["list"], &what);
        assert!(listed.code == Some(0) && listed.out.contains("sound"), "{what}: {listed:#?}");
        for arguments in [&["show"][..], &["events"], &["logs"], &["why"], &["gates"], &["answer"]] {
            let answer: &[&str] = if arguments == ["answer"] { &["{}"] } else { &[] };
            damaging.ask(&home, &[arguments, &[damaging.run.as_str()], answer].concat(), &what);
        }
        let other = damaging.ask(&home, &["run", &damaging.sound], &what);
        // What it goes by itself is damaged too, where all definitions are.
        let shared = matches!(column.0.as_str(), "definitions" | "spent");
        assert!(shared || other.code == Some(0), "{what}: {other:#?}");
    }
    println!("{damaged} damaged rows, {many} tried");
    assert!(damaged > columns.len() / 3, "only {damaged} rows took the damage");
}

#[test]
fn a_file_with_changed_bytes_is_told_and_never_a_panic() {
    let damaging = Damaging::new();
    let whole = std::fs::read(damaging.place.database()).expect("a database");
    let mut dice = Dice(20_261_118);
    let many = attacks(20, 300);
    for number in 0..many {
        let home = damaging.copy();
        let mut bytes = whole.clone();
        let at = dice.below(bytes.len() as u64) as usize;
        match number % 4 {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes[at..].iter_mut().take(64).for_each(|byte| *byte = 0xff),
            2 => bytes.truncate(at),
            _ => bytes[at / 4096 * 4096..].iter_mut().take(4096).for_each(|byte| *byte = 0),
        }
        std::fs::write(home.join("wonder.db"), &bytes).expect("a damaged file");
        let what = format!("number {number} at {at}");
        for arguments in [
            &["list"][..],
            &["show", &damaging.run],
            &["run", &damaging.sound],
            &["answer", &damaging.run, "{}"],
        ] {
            damaging.ask(&home, arguments, &what);
        }
    }
    println!("{many} damaged files");
}
