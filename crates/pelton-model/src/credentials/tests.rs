//! Issuers behind a keeper, with real files and paused time.

mod file; // a login in a file

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::time::Instant;

use super::*;
use crate::client::Secret;
use crate::error::ErrorKind;
use crate::world::World;

/// Time is tokio's, which tests pause.
struct PausedWorld {
    began: Instant,
}

impl World for PausedWorld {
    fn now(&self) -> Timestamp {
        // A day after the beginning of time: there is room for what has run out.
        Timestamp::UNIX_EPOCH + Duration::from_secs(86_400) + self.began.elapsed()
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }

    fn random(&self) -> u64 {
        0
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(wait).boxed()
    }
}

fn world() -> Arc<PausedWorld> {
    Arc::new(PausedWorld { began: Instant::now() })
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn key(text: &str) -> Auth {
    Auth::ApiKey(Secret::new(text))
}

/// A helper that prints these, one after the other, and counts.
fn helper(printed: &[Result<&str, &str>], ttl: Duration) -> (Keeper, Arc<AtomicU32>) {
    let own = |text: &&str| (*text).to_owned();
    let printed: VecDeque<Result<String, String>> =
        printed.iter().map(|line| line.as_ref().map(own).map_err(own)).collect();
    let (printed, runs) = (Arc::new(Mutex::new(printed)), Arc::<AtomicU32>::default());
    let count = Arc::clone(&runs);
    let program = move || {
        let (printed, count) = (Arc::clone(&printed), Arc::clone(&count));
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(seconds(1)).await;
            printed.lock().unwrap().pop_front().expect("the helper is run too often")
        }
        .boxed()
    };
    let world = world();
    (Keeper::new(HelperCommand::new(program, Auth::ApiKey, ttl, world.clone()), world), runs)
}

#[tokio::test(start_paused = true)]
async fn a_key_is_used_until_it_is_old() {
    let (keeper, runs) = helper(&[Ok(" one\n"), Ok("two")], HELPER_TTL);
    assert_eq!(keeper.current().await, Ok(key("one")));
    tokio::time::sleep(seconds(299)).await;
    assert_eq!(keeper.current().await, Ok(key("one")));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(keeper.current().await, Ok(key("two")));
}

#[tokio::test(start_paused = true)]
async fn however_many_ask_the_helper_runs_once() {
    let (keeper, runs) = helper(&[Ok("one"), Ok("two")], HELPER_TTL);
    let all = join_all((0..20).map(|_| keeper.current())).await;
    assert!(all.iter().all(|auth| *auth == Ok(key("one"))), "{all:?}");
    let all = join_all((0..20).map(|_| keeper.refresh(key("one")))).await;
    assert!(all.iter().all(|auth| *auth == Ok(Some(key("two")))), "{all:?}");
    // Late: it was renewed since.
    assert_eq!(keeper.refresh(key("one")).await, Ok(Some(key("two"))));
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_nobody_waits_for_any_more_is_left_and_run_again() {
    let (keeper, runs) = helper(&[Ok("one")], HELPER_TTL);
    let (first, second) = (keeper.current(), keeper.current());
    let both = async { tokio::join!(first, second) };
    tokio::time::timeout(Duration::from_millis(500), both).await.unwrap_err();
    tokio::time::sleep(seconds(5)).await;
    // What was left printed nothing: the key is still there.
    assert_eq!(keeper.current().await, Ok(key("one")));
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    // One who goes does not take it from those who wait.
    let (keeper, runs) = helper(&[Ok("one")], HELPER_TTL);
    let (impatient, patient) = (keeper.current(), keeper.current());
    let impatient = tokio::time::timeout(Duration::from_millis(500), impatient);
    let (gone, key_of_patient) = tokio::join!(impatient, patient);
    assert!(gone.is_err() && key_of_patient == Ok(key("one")));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_key_again_is_nothing_new() {
    let (keeper, _) = helper(&[Ok("one"), Ok("one"), Ok("two")], HELPER_TTL);
    assert_eq!(keeper.current().await, Ok(key("one")));
    assert_eq!(keeper.refresh(key("one")).await, Ok(None));
    assert_eq!(keeper.refresh(key("one")).await, Ok(Some(key("two"))), "another day it may have one");
}

#[tokio::test(start_paused = true)]
async fn an_errand_from_before_the_refusal_is_not_the_last_word() {
    let (keeper, runs) = helper(&[Ok("one"), Ok("one"), Ok("two")], seconds(10));
    keeper.current().await.unwrap();
    tokio::time::sleep(seconds(10)).await;
    // One call runs the helper because the key is old; another is refused meanwhile.
    let (current, refreshed) = futures::join!(keeper.current(), keeper.refresh(key("one")));
    assert_eq!((current, refreshed), (Ok(key("one")), Ok(Some(key("two")))));
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn an_old_key_is_kept_while_there_is_no_new_one() {
    let (keeper, runs) = helper(&[Ok("one"), Err("locked"), Err("locked"), Ok("two")], seconds(10));
    keeper.current().await.unwrap();
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(keeper.current().await, Ok(key("one")));
    // Nor is the helper run again at once.
    assert_eq!((keeper.current().await, runs.load(Ordering::Relaxed)), (Ok(key("one")), 2));
    // Once it is refused it is of no use.
    let error = keeper.refresh(key("one")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Authentication);
    assert_eq!(error.message, "the key helper gave no key: locked");
    assert_eq!(keeper.refresh(key("one")).await, Ok(Some(key("two"))));
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_prints_nothing_or_never_ends_is_an_error() {
    let (keeper, _) = helper(&[Ok(" \n")], HELPER_TTL);
    assert_eq!(keeper.current().await.unwrap_err().message, "the key helper gave no key: it printed nothing");
    let world = world();
    let never = || futures::future::pending().boxed();
    let keeper = Keeper::new(HelperCommand::new(never, Auth::Bearer, HELPER_TTL, world.clone()), world);
    let error = keeper.current().await.unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Timeout, "no credentials came within 120 seconds"));
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_breaks_down_does_not_take_us_with_it() {
    let runs = Arc::<AtomicU32>::default();
    let count = Arc::clone(&runs);
    let breaks = move || {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        async move { if first { panic!("scripted") } else { Ok("one".to_owned()) } }.boxed()
    };
    let world = world();
    let keeper = Keeper::new(HelperCommand::new(breaks, Auth::ApiKey, HELPER_TTL, world.clone()), world);
    assert_eq!(keeper.current().await.unwrap_err().kind, ErrorKind::Other);
    assert_eq!(keeper.current().await, Ok(key("one")));
}

#[tokio::test(start_paused = true)]
async fn an_exchange_that_was_begun_is_finished_though_nobody_waits_any_longer() {
    struct Exchange(Arc<AtomicU32>);
    impl Issuer for Exchange {
        fn issue(&self, _: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>> {
            let runs = Arc::clone(&self.0);
            async move {
                runs.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(seconds(1)).await;
                Ok(Issued { auth: key("one"), good_until: None })
            }
            .boxed()
        }
    }
    let runs = Arc::<AtomicU32>::default();
    let keeper = Keeper::new(Exchange(Arc::clone(&runs)), world());
    assert_eq!(keeper.current().now_or_never(), None);
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(keeper.current().now_or_never(), Some(Ok(key("one"))));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}
