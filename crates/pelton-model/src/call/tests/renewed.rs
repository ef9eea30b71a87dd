//! Credentials that are not accepted.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::credentials::{Credentials, Issued, Issuer, Keeper};

/// Never at a loss for another token.
#[derive(Default)]
pub(super) struct Endless {
    issued: AtomicU32,
}

impl Credentials for Endless {
    fn current(&self) -> BoxFuture<'static, Result<Auth, ModelError>> {
        let number = self.issued.load(Ordering::Relaxed);
        async move { Ok(bearer(&number.to_string())) }.boxed()
    }

    fn refresh(&self, _: Auth) -> BoxFuture<'static, Result<Option<Auth>, ModelError>> {
        let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(Some(bearer(&number.to_string()))) }.boxed()
    }
}

/// Hands out the tokens of a list, one for each refusal, and then errors for a while.
struct Listed {
    tokens: Arc<Mutex<VecDeque<Result<&'static str, ModelError>>>>,
    last: Arc<Mutex<Auth>>,
    asked: Arc<AtomicU32>,
}

impl Issuer for Listed {
    fn issue(&self, refused: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>> {
        let (tokens, last, asked) =
            (Arc::clone(&self.tokens), Arc::clone(&self.last), Arc::clone(&self.asked));
        async move {
            asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(100)).await;
            let mut last = last.lock().unwrap();
            if refused.as_ref() == Some(&*last) || *last == Auth::None {
                match tokens.lock().unwrap().pop_front() {
                    Some(Ok(token)) => *last = bearer(token),
                    Some(Err(error)) => return Err(error),
                    None => {}
                }
            }
            Ok(Issued { auth: last.clone(), good_until: None })
        }
        .boxed()
    }
}

fn bearer(token: &str) -> Auth {
    Auth::Bearer(Secret::new(token))
}

fn world() -> Arc<PausedWorld> {
    Arc::new(PausedWorld { began: Instant::now() })
}

/// Credentials that are these in turn, and how often their issuer was asked.
fn listed(
    tokens: impl IntoIterator<Item = Result<&'static str, ModelError>>,
) -> (Arc<dyn Credentials>, Arc<AtomicU32>) {
    let asked = Arc::<AtomicU32>::default();
    let issuer = Listed {
        tokens: Arc::new(Mutex::new(tokens.into_iter().collect())),
        last: Arc::new(Mutex::new(Auth::None)),
        asked: Arc::clone(&asked),
    };
    (Arc::new(Keeper::new(issuer, world())), asked)
}

fn endpoint(credentials: &Arc<dyn Credentials>) -> Endpoint {
    // What is fixed is not asked for when there is something better.
    let fixed = Auth::ApiKey(Secret::new("unused"));
    Endpoint { credentials: Some(Arc::clone(credentials)), ..Endpoint::new("http://in.memory", fixed) }
}

pub(super) async fn play_with(
    credentials: &Arc<dyn Credentials>,
    turns: impl IntoIterator<Item = Turn>,
) -> Outcome {
    let server = scripted(turns);
    play_on(&client(endpoint(credentials), &server, RetryPolicy::default()), &server, an_ask()).await
}

fn tokens(outcome: &Outcome) -> Vec<&str> {
    assert!(outcome.posts.iter().all(|post| header(post, "x-api-key").is_none()));
    let token = |post| header(post, "authorization").unwrap().strip_prefix("Bearer ").unwrap();
    outcome.posts.iter().map(token).collect()
}

fn refused() -> Turn {
    error(
        401,
        "authentication_error",
        "invalid token",
        &[("request-id", "req_9"), ("x-should-retry", "false")],
    )
}

fn revoked() -> Turn {
    error(403, "permission_error", "OAuth token has been revoked.", &[])
}

#[tokio::test(start_paused = true)]
async fn loop_R4_a_refused_token_is_renewed_and_the_call_goes_on() {
    let (credentials, asked) = listed([Ok("one"), Ok("two")]);
    let outcome = play_with(&credentials, [refused(), events(HELLO)]).await;
    assert_eq!(tokens(&outcome), ["one", "two"]);
    let notice = "retry 1 in 0ns: 401 authentication_error: invalid token (request req_9)\nrequesting 2\n";
    assert!(outcome.log.contains(notice), "{}", outcome.log);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
    // The next call begins with what was renewed.
    let outcome = play_with(&credentials, [events(HELLO)]).await;
    assert_eq!((tokens(&outcome), asked.load(Ordering::Relaxed)), (vec!["two"], 2));
    // An error inside a stream is one as well.
    let late = r#"{"type":"error","error":{"type":"authentication_error","message":"m"}}"#;
    let (credentials, _) = listed([Ok("one"), Ok("two")]);
    let outcome = play_with(&credentials, [events([START, late]), events(HELLO)]).await;
    assert_eq!(tokens(&outcome), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn loop_R4_with_nothing_to_renew_the_refusal_is_told() {
    let told = "failed Authentication: 401 authentication_error: invalid token (request req_9)\n";
    // A key that is fixed, one that comes back the same, and one given by hand.
    let outcome = play_through([refused()]).await;
    assert!(outcome.log.ends_with(told), "{}", outcome.log);
    let (credentials, _) = listed([Ok("one")]);
    let outcome = play_with(&credentials, [refused()]).await;
    assert!(outcome.log.ends_with(told) && !outcome.log.contains("retry"), "{}", outcome.log);
    let (credentials, asked) = listed([Ok("one"), Ok("two")]);
    let by_hand = vec![("X-Api-Key".to_owned(), "mine".to_owned())];
    let endpoint = Endpoint { custom_headers: by_hand, ..endpoint(&credentials) };
    let server = scripted([refused()]);
    let outcome = play_on(&client(endpoint, &server, RetryPolicy::default()), &server, an_ask()).await;
    assert!(outcome.log.ends_with(told), "{}", outcome.log);
    assert_eq!(asked.load(Ordering::Relaxed), 0);

    // Why it could not be renewed is told with it.
    let gone = ModelError::new(ErrorKind::Authentication, "log in again");
    let (credentials, _) = listed([Ok("one"), Err(gone)]);
    let outcome = play_with(&credentials, [refused()]).await;
    let told =
        "failed Authentication: 401 authentication_error: invalid token; log in again (request req_9)\n";
    assert!(outcome.log.ends_with(told), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn loop_R4_renewals_end() {
    let (credentials, _) = listed([Ok("one"), Ok("two"), Ok("three"), Ok("four")]);
    let outcome = play_with(&credentials, [refused(), refused(), refused()]).await;
    assert_eq!(tokens(&outcome), ["one", "two", "three"]);
    assert!(outcome.log.contains("failed Authentication"), "{}", outcome.log);
    // What was accepted in between may be refused another day.
    let other = || error(500, "api_error", "m", &[]);
    let (credentials, _) = listed([Ok("one"), Ok("two"), Ok("three"), Ok("four")]);
    let turns = [refused(), refused(), other(), refused(), events(HELLO)];
    assert_eq!(tokens(&play_with(&credentials, turns).await), ["one", "two", "three", "three", "four"]);
}

#[tokio::test(start_paused = true)]
async fn loop_R4_a_renewal_that_fails_for_the_moment_is_tried_again() {
    let busy = || Err(ModelError::new(ErrorKind::Server, "the login could not be renewed: busy"));
    let (credentials, _) = listed([Ok("one"), busy(), busy(), Ok("two")]);
    let outcome = play_with(&credentials, [refused(), events(HELLO)]).await;
    // Nothing is sent meanwhile: what would be sent is known to be refused.
    assert_eq!(tokens(&outcome), ["one", "two"]);
    assert!(
        outcome.log.contains("retry 1 in 500ms: the login could not be renewed: busy\n"),
        "{}",
        outcome.log
    );
    assert!(outcome.log.contains("retry 2 in 1s: the login could not be renewed: busy\n"), "{}", outcome.log);
    assert!(outcome.log.ends_with("finished end_turn, 57 tokens\n"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn loop_R4_many_calls_that_are_refused_at_once_renew_once() {
    let (credentials, asked) = listed([Ok("one"), Ok("two"), Ok("three")]);
    // Some share a client, some only the credentials; the last ones are refused late.
    let play = |late: u64| {
        let refusal = acts(vec![Act::Wait(late)]);
        let Turn::Answer { acts: waiting, .. } = refusal else { unreachable!() };
        let Turn::Answer { status, headers, acts: said } = refused() else { unreachable!() };
        let refusal = Turn::Answer { status, headers, acts: waiting.into_iter().chain(said).collect() };
        let credentials = Arc::clone(&credentials);
        async move { play_with(&credentials, [refusal, events(HELLO)]).await }
    };
    let outcomes = futures::future::join_all((0..25).map(|number| play(number / 10))).await;
    for outcome in &outcomes {
        assert_eq!(tokens(outcome), ["one", "two"], "{}", outcome.log);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "one for all at first, and one for all who were refused");
}

#[tokio::test(start_paused = true)]
async fn loop_R5_a_revoked_token_is_renewed() {
    let (credentials, _) = listed([Ok("one"), Ok("two")]);
    let outcome = play_with(&credentials, [revoked(), events(HELLO)]).await;
    assert_eq!(tokens(&outcome), ["one", "two"]);
    assert!(outcome.log.contains("retry 1 in 0ns: 403 permission_error: OAuth token has been revoked.\n"));
    // Other things that are not allowed are not allowed to anybody.
    let (credentials, _) = listed([Ok("one"), Ok("two")]);
    let outcome = play_with(&credentials, [error(403, "permission_error", "not this model", &[])]).await;
    assert_eq!(tokens(&outcome), ["one"]);
    assert!(outcome.log.contains("failed Permission: 403"), "{}", outcome.log);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_do_not_come_are_an_error() {
    let none = || Err(ModelError::new(ErrorKind::Authentication, "no key today"));
    let (credentials, _) = listed([none()]);
    let outcome = play_with(&credentials, []).await;
    assert_eq!(outcome.log, "requesting 1\nfailed Authentication: no key today\n");
    let away = || Err(ModelError::new(ErrorKind::Connection(TransportErrorKind::Dns), "nobody there"));
    let (credentials, _) = listed([away(), Ok("one")]);
    let outcome = play_with(&credentials, [events(HELLO)]).await;
    assert!(outcome.log.starts_with("requesting 1\nretry 1 in 500ms: nobody there\n"), "{}", outcome.log);
}
