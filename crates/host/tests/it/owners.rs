//! One database, several who want it.

use wonder_engine::Status;
use wonder_host::{Leaving, Options, Purpose, open};

use crate::test_host::{TestHost, chain, enter, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_opener_reaches_the_first() {
    let first = TestHost::new().await;
    let second = enter(first.home.path()).await;
    assert_eq!(second.owner(), Some(std::process::id()));
    let view = second.engine().start(start(&chain(20), "{}")).await.unwrap();
    let view = second.engine().wait(view.row.run, 60_000).await.unwrap();
    assert_eq!(view.row.status, Status::Completed);
    assert_eq!(first.engine().list(Default::default()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_owner_leaves_the_next_takes_over() {
    let first = TestHost::new().await;
    let second = enter(first.home.path()).await;
    let file = "
wonder: 1
name: steps
nodes:
  a: {sleep: {for: 150ms}, next: [{to: b}]}
  b: {mock: {output: {}, delay: 50ms}, next: [{to: c}]}
  c: {mock: {output: {done: true}}}
";
    let view = second.engine().start(start(file, "{}")).await.unwrap();
    let run = view.row.run.clone();
    let waiting = second.engine().wait(run, 60_000);
    let leaving = first.connection.close(Leaving::Drain);
    let (view, ()) = tokio::join!(waiting, leaving);
    assert_eq!(view.unwrap().row.status, Status::Completed);
    assert_eq!(second.owner(), None, "it owns the database now");
    second.close(Leaving::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_makes_nothing_and_disturbs_nobody() {
    let home = tempfile::TempDir::new().unwrap();
    let empty = open(Options::new(home.path()), Purpose::Look).await.unwrap();
    assert!(empty.engine().list(Default::default()).await.unwrap().is_empty());
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "looking left something behind");

    let owner = enter(home.path()).await;
    let view = owner.engine().start(start(&chain(3), "{}")).await.unwrap();
    owner.engine().wait(view.row.run.clone(), 60_000).await.unwrap();
    let look = open(Options::new(home.path()), Purpose::Look).await.unwrap();
    assert_eq!(look.engine().find("last".to_owned()).await.unwrap().row.run, view.row.run);
    owner.close(Leaving::Drain).await;
    assert_eq!(look.engine().find("last".to_owned()).await.unwrap().row.status, Status::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_that_passed_fire_when_somebody_looks() {
    let host = TestHost::new().await;
    let file = "
wonder: 1
name: patient
nodes:
  ask: {human_gate: {title: Well?, timeout: 1ms, on_timeout: default, default: {ok: true}}, next: [{to: nap}]}
  nap: {sleep: {for: 20ms}, next: [{to: done}]}
  done: {update_context: {set: {output.ok: state.ask.ok}}}
";
    let view = host.engine().start(start(file, "{}")).await.unwrap();
    host.connection.close(Leaving::Now).await;
    // Whatever has fired by now, looking until the sleep is over fires the rest.
    loop {
        let look = open(Options::new(host.home.path()), Purpose::Look).await.unwrap();
        let found = look.engine().find(view.row.run.clone()).await.unwrap();
        if found.row.status == Status::Completed {
            assert_eq!(found.output.unwrap().to_string(), r#"{"ok":true}"#);
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_can_use_what_is_in_the_home_whatever_the_directory_was_like() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::TempDir::new().unwrap();
    let set =
        |mode: u32| std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o755);
    for loose in ["wonder.lock", "wonder.db"] {
        std::fs::write(home.path().join(loose), "").unwrap();
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(home.path().join(loose), open).unwrap();
    }
    let host = TestHost::at(home).await;
    host.run(&crate::test_host::chain(2), "{}").await;
    let mode = |name: &str| {
        let path = host.home.path().join(name);
        path.metadata().unwrap_or_else(|error| panic!("{name}: {error}")).permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    for name in ["wonder.lock", "wonder.sock", "wonder.db", "wonder.db-wal", "wonder.db-shm"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    let home = host.leave().await;
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = wonder_host::open(wonder_host::Options::new(home.path()), wonder_host::Purpose::Act).await;
    assert!(refused.unwrap_err().message.contains("others may write in it"));
}
