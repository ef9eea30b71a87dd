//! Requests that are signed as a whole, with credentials that run out.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use pelton_model::credentials::{Issued, Issuer, Keeper};
use pelton_model::{Auth, ModelError, Post, RealWorld, Secret, Sign, Signing};
use pelton_testkit::{Script, Step, text, tool};
use serde_json::json;

use crate::stage::{Stage, run};

/// Signs address, version and body with a numbered key, as clouds do with their own arithmetic.
struct FakeSigner {
    key: u32,
}

impl Sign for FakeSigner {
    fn sign(&self, post: &mut Post, now: Timestamp) -> Result<(), ModelError> {
        let version = post.headers["anthropic-version"].to_str().unwrap();
        let signature = signature(&post.url, version, &post.body.to_vec());
        let words = format!("Bearer key-{}/{}/{signature:x}", self.key, now.as_second());
        post.headers.insert("authorization", words.parse().unwrap());
        Ok(())
    }

    fn secrets(&self) -> Vec<Secret> {
        vec![Secret::new(signing_key(self.key))]
    }
}

fn signing_key(number: u32) -> String {
    format!("a-long-signing-key-{number:04}")
}

fn signature(url: &str, version: &str, body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(url.as_bytes());
    hasher.write(version.as_bytes());
    hasher.write(body);
    hasher.finish()
}

/// Hands out keys by number.
#[derive(Default)]
struct Cloud {
    issued: Arc<AtomicU32>,
}

impl Issuer for Cloud {
    fn issue(&self, _: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>> {
        let key = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        let signing = Signing::new(Secret::new(format!("key-{key}")), FakeSigner { key });
        async move { Ok(Issued { auth: Auth::Signed(signing), good_until: None }) }.boxed()
    }
}

#[tokio::test]
async fn loop_R7_credentials_that_sign_are_renewed_in_their_own_way() {
    let expired =
        Step::status(403).body(json!({"message": "The security token included in the request is expired"}));
    let script =
        Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).step(expired).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let cloud = Cloud::default();
    let issued = Arc::clone(&cloud.issued);
    let mut engine = stage.engine_with(|options| {
        options.endpoint.auth = Auth::None;
        options.endpoint.credentials = Some(Arc::new(Keeper::new(cloud, Arc::new(RealWorld::new()))));
    });

    assert_eq!(run(&mut engine, "Go.").await.assert_completed().text, "Done.");

    let requests = stage.model.reply_requests();
    let keys: Vec<String> = requests
        .iter()
        .map(|seen| {
            let words = seen.header("authorization").unwrap().strip_prefix("Bearer ").unwrap();
            let [key, _, signed] = words.split('/').collect::<Vec<_>>()[..] else { panic!("{words}") };
            let url = format!("{}{}", stage.model.base_url(), seen.path);
            let whole = signature(&url, seen.header("anthropic-version").unwrap(), &seen.raw);
            assert_eq!(signed, format!("{whole:x}"), "the signature covers what arrived");
            assert_eq!(seen.header("x-api-key"), None);
            key.to_owned()
        })
        .collect();
    assert_eq!(keys, ["key-1", "key-1", "key-2"]);
    assert_eq!(issued.load(Ordering::Relaxed), 2);
    stage.assert_all_played();
}

#[tokio::test]
async fn what_requests_are_signed_with_is_written_down_nowhere() {
    let script = Script::new().reply([tool("Read", json!({"file_path": "keys.txt"}))]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let text = format!("key = {}\n", signing_key(1));
    stage.write("keys.txt", &text);
    let mut engine = stage.engine_with(|options| {
        options.endpoint.auth = Auth::None;
        let keeper = Keeper::new(Cloud::default(), Arc::new(RealWorld::new()));
        options.endpoint.credentials = Some(Arc::new(keeper));
    });
    run(&mut engine, "Go.").await.assert_completed();
    let mut seen = 0;
    let mut dirs = vec![stage.config_dir()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
                continue;
            }
            let written = std::fs::read(entry.path()).unwrap();
            let written = String::from_utf8_lossy(&written);
            assert!(!written.contains(&signing_key(1)), "{}", entry.path().display());
            seen += usize::from(written.contains("key = [redacted]"));
        }
    }
    assert!(seen > 0, "the result is there without it");
    stage.assert_all_played();
}
