//! A login in a file.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::transport::{Post, Response, Transport, TransportError, TransportErrorKind};

const URL: &str = "http://in.memory/token";
/// The scripted day begins here, in milliseconds.
const TODAY_MS: u64 = 86_400_000;

/// Exchanges each refresh token once, as `r1` for `a2` and `r2`, and remembers what it was sent.
struct Exchange {
    next: Mutex<u32>,
    trouble: Mutex<VecDeque<Trouble>>,
    posts: Mutex<Vec<Post>>,
}

enum Trouble {
    Status(u16),
    Lost,
    Silent,
    Says(Value),
}

impl Exchange {
    fn new(trouble: impl IntoIterator<Item = Trouble>) -> Arc<Self> {
        Arc::new(Self {
            next: Mutex::new(1),
            trouble: Mutex::new(trouble.into_iter().collect()),
            posts: Mutex::default(),
        })
    }

    fn answer(&self, body: &str) -> (u16, Value) {
        let mut next = self.next.lock().unwrap();
        if !body.contains(&format!("r{next}")) {
            return (400, json!({"error": "invalid_grant", "error_description": format!("no {body}")}));
        }
        *next += 1;
        let tokens = json!({
            "token_type": "Bearer", "access_token": format!("a{next}"), "refresh_token": format!("r{next}"),
            "expires_in": 3600, "scope": "user:inference user:profile",
        });
        (200, tokens)
    }
}

impl Transport for Exchange {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        let body = String::from_utf8(post.body.to_vec()).unwrap();
        self.posts.lock().unwrap().push(post);
        let (status, said) = match self.trouble.lock().unwrap().pop_front() {
            Some(Trouble::Status(status)) => (status, json!({"error": "server_error"})),
            Some(Trouble::Lost) => {
                return async { Err(TransportError::new(TransportErrorKind::Reset, "lost")) }.boxed();
            }
            Some(Trouble::Silent) => return futures::future::pending().boxed(),
            Some(Trouble::Says(said)) => (200, said),
            None => self.answer(&body),
        };
        let chunk = Ok(Bytes::from(said.to_string()));
        let body = futures::stream::once(async { chunk }).boxed();
        async move {
            tokio::time::sleep(seconds(1)).await;
            Ok(Response { status, headers: Default::default(), body })
        }
        .boxed()
    }
}

/// A login that runs out so many seconds after the day began.
fn login(expires_s: i64) -> Value {
    let expires_ms = TODAY_MS as i64 + expires_s * 1000;
    json!({
        "mcpOAuth": {"kept": true},
        "claudeAiOauth": {
            "accessToken": "a1", "refreshToken": "r1", "expiresAt": expires_ms, "scopes": ["user:inference"],
            "subscriptionType": "max",
        },
    })
}

fn folder(login: &Value) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("login.json"), login.to_string()).unwrap();
    folder
}

fn options(folder: &Path) -> OauthOptions {
    OauthOptions {
        path: folder.join("login.json"),
        token_url: URL.to_owned(),
        client_id: Some("us & them".to_owned()),
        form: TokenForm::Form,
        user_agent: "pelton".to_owned(),
    }
}

fn keeper(folder: &Path, exchange: &Arc<Exchange>) -> Keeper {
    let world = world();
    Keeper::new(OauthFile::new(options(folder), exchange.clone(), world.clone()), world)
}

fn stored(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("login.json")).unwrap()).unwrap()
}

fn token(text: &str) -> Auth {
    Auth::Bearer(Secret::new(text))
}

#[tokio::test(start_paused = true)]
async fn a_good_token_is_used_as_it_is() {
    let folder = folder(&login(3600));
    let exchange = Exchange::new([]);
    assert_eq!(keeper(folder.path(), &exchange).current().await, Ok(token("a1")));
    // A token without an end, and one that nobody can renew.
    for change in [("expiresAt", Value::Null), ("refreshToken", Value::Null)] {
        let mut login = login(-10);
        login["claudeAiOauth"][change.0] = change.1;
        fs::write(folder.path().join("login.json"), login.to_string()).unwrap();
        assert_eq!(keeper(folder.path(), &exchange).current().await, Ok(token("a1")));
    }
    assert_eq!(keeper(folder.path(), &exchange).refresh(token("a1")).await, Ok(None));
    assert!(exchange.posts.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_token_that_runs_out_is_renewed_and_written_down() {
    let folder = folder(&login(299));
    let exchange = Exchange::new([]);
    let keeper = keeper(folder.path(), &exchange);
    assert_eq!(keeper.current().await, Ok(token("a2")));
    let expected = json!({
        "mcpOAuth": {"kept": true},
        "claudeAiOauth": {
            "accessToken": "a2", "refreshToken": "r2", "expiresAt": TODAY_MS + 1000 + 3_600_000,
            "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
        },
    });
    assert_eq!(stored(folder.path()).to_string(), expected.to_string());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "the login and its lock: {names:?}");
    #[cfg(unix)]
    for name in names {
        let about = fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777, 0o600);
    }
    let post = exchange.posts.lock().unwrap().remove(0);
    assert_eq!(post.headers["content-type"], "application/x-www-form-urlencoded");
    let body = post.body.to_vec();
    assert_eq!(body, b"grant_type=refresh_token&refresh_token=r1&client_id=us%20%26%20them");
    // An hour later, less five minutes.
    tokio::time::sleep(seconds(3299)).await;
    assert_eq!(keeper.current().await, Ok(token("a2")));
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(keeper.current().await, Ok(token("a3")));
}

#[tokio::test(start_paused = true)]
async fn some_servers_want_json() {
    let folder = folder(&login(0));
    let exchange = Exchange::new([]);
    let options = OauthOptions { form: TokenForm::Json, ..options(folder.path()) };
    let world = world();
    let keeper = Keeper::new(OauthFile::new(options, exchange.clone(), world.clone()), world);
    assert_eq!(keeper.current().await, Ok(token("a2")));
    let body = exchange.posts.lock().unwrap()[0].body.to_vec();
    assert_eq!(body, br#"{"grant_type":"refresh_token","refresh_token":"r1","client_id":"us & them"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_renewed_though_it_looks_good() {
    let folder = folder(&login(3600));
    let keeper = keeper(folder.path(), &Exchange::new([]));
    assert_eq!(keeper.current().await, Ok(token("a1")));
    assert_eq!(keeper.refresh(token("a1")).await, Ok(Some(token("a2"))));
    // Unless somebody else has renewed it.
    let mut newer = login(3600);
    newer["claudeAiOauth"]["accessToken"] = "theirs".into();
    fs::write(folder.path().join("login.json"), newer.to_string()).unwrap();
    assert_eq!(keeper.refresh(token("a2")).await, Ok(Some(token("theirs"))));
}

#[tokio::test(start_paused = true)]
async fn pit_L17_a_renewal_that_fails_for_the_moment_keeps_the_old_token() {
    use Trouble::{Lost, Silent, Status};
    for trouble in [|| Status(500), || Status(503), || Status(429), || Lost, || Silent] {
        // One that lasts a little, and one that by our clock is over.
        for expires_s in [120, -120] {
            let folder = folder(&login(expires_s));
            let before = fs::read(folder.path().join("login.json")).unwrap();
            let exchange = Exchange::new([trouble(), trouble()]);
            let keeper = keeper(folder.path(), &exchange);
            assert_eq!(keeper.current().await, Ok(token("a1")));
            assert_eq!(fs::read(folder.path().join("login.json")).unwrap(), before);
            // Nor is the exchange asked again at once.
            assert_eq!(keeper.current().await, Ok(token("a1")));
            assert_eq!(exchange.posts.lock().unwrap().len(), 1);
            // Once it is refused, there is nothing to go on with, but another time there may be.
            let error = keeper.refresh(token("a1")).await.unwrap_err();
            assert_ne!(error.kind, ErrorKind::Authentication, "{error}");
            assert!(error.message.starts_with("the login could not be renewed: "), "{error}");
            assert_eq!(fs::read(folder.path().join("login.json")).unwrap(), before);
            assert_eq!(keeper.refresh(token("a1")).await, Ok(Some(token("a2"))));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_over_says_so_and_tells_no_secrets() {
    let mut dead = login(3600);
    dead["claudeAiOauth"]["refreshToken"] = "s3cret".into();
    let folder = folder(&dead);
    let keeper = keeper(folder.path(), &Exchange::new([]));
    let error = keeper.refresh(token("a1")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Authentication);
    assert_eq!(error.message, "the login could not be renewed: invalid_grant; log in again");
    assert!(!format!("{error:?} {keeper:?}").contains("s3cret"));
}

#[tokio::test(start_paused = true)]
async fn a_strange_exchange_changes_nothing() {
    for said in [json!({}), json!([]), json!({"access_token": ""}), json!({"access_token": 7})] {
        let folder = folder(&login(3600));
        let keeper = keeper(folder.path(), &Exchange::new([Trouble::Says(said)]));
        let error = keeper.refresh(token("a1")).await.unwrap_err();
        assert_eq!(error.message, "the login could not be renewed: the answer holds no token");
        assert_eq!(stored(folder.path()), login(3600));
    }
    // The least that can be said: the rest stays.
    let folder = folder(&login(3600));
    let least = Trouble::Says(json!({"access_token": "new"}));
    let keeper = keeper(folder.path(), &Exchange::new([least]));
    assert_eq!(keeper.refresh(token("a1")).await, Ok(Some(token("new"))));
    let stored = &stored(folder.path())["claudeAiOauth"];
    assert_eq!((&stored["refreshToken"], &stored["expiresAt"]), (&json!("r1"), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn somebody_who_does_not_know_our_lock_may_be_quicker() {
    let folder = folder(&login(3600));
    // Their renewal has used up the refresh token, and is written while ours is under way.
    let exchange = Exchange::new([Trouble::Status(400)]);
    let keeper = keeper(folder.path(), &exchange);
    let path = folder.path().join("login.json");
    let theirs = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut newer = login(3600);
        newer["claudeAiOauth"]["accessToken"] = "theirs".into();
        fs::write(path, newer.to_string()).unwrap();
    };
    let (renewed, ()) = futures::join!(keeper.refresh(token("a1")), theirs);
    assert_eq!(renewed, Ok(Some(token("theirs"))));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_never_lasts_long_is_not_renewed_for_every_request() {
    let folder = folder(&login(0));
    let exchange = Exchange::new([Trouble::Says(json!({"access_token": "short", "expires_in": 60}))]);
    let keeper = keeper(folder.path(), &exchange);
    for _ in 0..20 {
        assert_eq!(keeper.current().await, Ok(token("short")));
        tokio::time::sleep(seconds(1)).await;
    }
    assert_eq!(exchange.posts.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn files_that_cannot_be_used_are_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("login.json");
    let check = async |words: &str| {
        let error = keeper(folder.path(), &Exchange::new([])).current().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Authentication);
        assert!(error.message.contains("login.json") && error.message.contains(words), "{error}");
        assert!(!error.message.contains("s3cret"), "{error}");
    };
    check("cannot be read: ").await;
    for (text, words) in [
        (r#"{"claudeAiOauth":{"accessToken":"s3cret""#, "is not a JSON object"),
        (r#"["s3cret"]"#, "is not a JSON object"),
        (r#"{"other":"s3cret"}"#, "holds no login"),
        (r#"{"claudeAiOauth":{"accessToken":""}}"#, "holds no login"),
        (&format!("{{\"a\":\"{}\"}}", "x".repeat(1024 * 1024)), "is too large"),
    ] {
        fs::write(&path, text).unwrap();
        check(words).await;
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_link_stays_a_link() {
    let (real, linked) = (folder(&login(0)), tempfile::tempdir().unwrap());
    let link = linked.path().join("login.json");
    std::os::unix::fs::symlink(real.path().join("login.json"), &link).unwrap();
    assert_eq!(keeper(linked.path(), &Exchange::new([])).current().await, Ok(token("a2")));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(stored(real.path())["claudeAiOauth"]["refreshToken"], "r2");
}

/// Only the superuser can make such a file.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_file_of_somebody_else_is_refused() {
    let folder = folder(&login(3600));
    if !nix::unistd::Uid::effective().is_root() {
        // Files of the system belong to somebody else already.
        let options = OauthOptions { path: "/etc/passwd".into(), ..options(folder.path()) };
        let keeper = Keeper::new(OauthFile::new(options, Exchange::new([]), world()), world());
        assert!(keeper.current().await.unwrap_err().message.ends_with("belongs to somebody else"));
        return;
    }
    std::os::unix::fs::chown(folder.path().join("login.json"), Some(65_534), None).unwrap();
    let error = keeper(folder.path(), &Exchange::new([])).current().await.unwrap_err();
    assert!(error.message.ends_with("belongs to somebody else"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_cannot_be_written_costs_no_token() {
    let folder = folder(&login(0));
    let exchange = Exchange::new([]);
    // A lock that is a folder cannot be taken, whoever tries.
    fs::create_dir(folder.path().join("login.json.lock")).unwrap();
    let keeper = keeper(folder.path(), &exchange);
    assert_eq!(keeper.current().await, Ok(token("a1")));
    let error = keeper.refresh(token("a1")).await.unwrap_err();
    assert!(error.message.contains("cannot be locked"), "{error}");
    assert!(exchange.posts.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_never_given_back_is_not_waited_for_for_ever() {
    let folder = folder(&login(0));
    let lock = fs::File::create(folder.path().join("login.json.lock")).unwrap();
    lock.lock().unwrap();
    let keeper = keeper(folder.path(), &Exchange::new([]));
    assert_eq!(keeper.current().await, Ok(token("a1")));
    let error = keeper.refresh(token("a1")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    drop(lock);
    assert_eq!(keeper.refresh(token("a1")).await, Ok(Some(token("a2"))));
}

/// Each with a keeper of its own, as if they were processes.
#[tokio::test(start_paused = true)]
async fn many_who_share_a_file_renew_it_once() {
    let folder = folder(&login(0));
    let exchange = Exchange::new([]);
    let all = join_all((0..20).map(|_| keeper(folder.path(), &exchange).current())).await;
    assert!(all.iter().all(|auth| *auth == Ok(token("a2"))), "{all:?}");
    assert_eq!(exchange.posts.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_who_share_a_token_that_never_lasts_long_renew_it_once() {
    let folder = folder(&login(0));
    let exchange = Exchange::new([Trouble::Says(json!({"access_token": "short", "expires_in": 60}))]);
    let all = join_all((0..20).map(|_| keeper(folder.path(), &exchange).current())).await;
    assert!(all.iter().all(|auth| *auth == Ok(token("short"))), "{all:?}");
    assert_eq!(exchange.posts.lock().unwrap().len(), 1);
}
