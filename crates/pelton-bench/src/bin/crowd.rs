//! Sessions of the engine in one process, as a server holds them.
//!
//!     crowd ADDRESS DIRECTORY sessions N     N sessions at once, with their records on disk
//!     crowd ADDRESS DIRECTORY synced         one session, its waits for the disk measured, beside bare ones of as many bytes
//!
//! Sessions work in DIRECTORY. The last line of standard output is a report, as JSON.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use pelton::transcript::{Disk, DiskFile, Durability, RealDisk};
use pelton::{Engine, Event, Options, Prompt, Sessions};
use pelton_model::{Auth, Endpoint, HttpOptions, HttpTransport, Secret, Transport};
use serde_json::{Value, json};

type Failed = Box<dyn std::error::Error>;

/// So many sessions begin at once; the others begin as these have.
const BEGIN_TOGETHER: usize = 100;

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = match words[..] {
        [address, dir, "sessions", many] => {
            runtime.block_on(sessions(address, Path::new(dir), many.parse()?))?
        }
        [address, dir, "synced"] => runtime.block_on(synced(address, Path::new(dir)))?,
        _ => return Err("usage: crowd ADDRESS DIRECTORY (sessions N | synced)".into()),
    };
    println!("{report}");
    Ok(())
}

fn options(address: &str, dir: &Path, road: &Arc<dyn Transport>) -> Options {
    let endpoint = Endpoint::new(format!("http://{address}"), Auth::ApiKey(Secret::new("any")));
    let mut options = Options::new(dir, endpoint);
    options.transport = Arc::clone(road);
    options.sessions = Some(Sessions { config_dir: dir.join("config"), durability: Durability::default() });
    options
}

fn road() -> Arc<dyn Transport> {
    Arc::new(HttpTransport::new(HttpOptions::default()))
}

async fn sessions(address: &str, dir: &Path, many: usize) -> Result<Value, Failed> {
    let road = road();
    let mut all = tokio::task::JoinSet::new();
    for begun in 0..many {
        let engine = Engine::new(options(address, dir, &road))?;
        all.spawn(one(engine));
        if begun % BEGIN_TOGETHER == BEGIN_TOGETHER - 1 {
            tokio::task::yield_now().await;
        }
    }
    let mut failed = Vec::new();
    while let Some(ended) = all.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(why)) => failed.push(why),
            Err(error) => failed.push(error.to_string()),
        }
    }
    Ok(json!({"sessions": many, "failed": failed.len(), "why": failed.first()}))
}

async fn one(mut engine: Engine) -> Result<(), String> {
    let prompt = Prompt::text("Go.").map_err(|error| error.to_string())?;
    let mut events = Box::pin(engine.submit(prompt));
    let mut answer = Err("it did not end".to_owned());
    while let Some(event) = events.next().await {
        if let Event::Result(outcome) = event {
            answer = if outcome.is_error { Err(outcome.text.clone()) } else { Ok(()) };
        }
    }
    answer
}

async fn synced(address: &str, dir: &Path) -> Result<Value, Failed> {
    let timed = TimedDisk::default();
    let mut options = options(address, dir, &road());
    options.disk = Arc::new(timed.clone());
    one(Engine::new(options)?).await?;
    let waits = std::mem::take(&mut *timed.waits.lock().unwrap_or_else(PoisonError::into_inner));
    let bare = bare_waits(dir, &waits)?;
    let micros = |wait: &Duration| wait.as_secs_f64() * 1e6;
    let engine: Vec<f64> = waits.iter().map(|wait| micros(&wait.took)).collect();
    let bare: Vec<f64> = bare.iter().map(micros).collect();
    Ok(json!({"engine_us": engine, "bare_us": bare}))
}

/// As many bytes, written and waited for in the same order, with nothing around it.
fn bare_waits(dir: &Path, waits: &[Wait]) -> io::Result<Vec<Duration>> {
    let mut file = OpenOptions::new().create(true).append(true).open(dir.join("bare.jsonl"))?;
    let sync = |file: &mut File, wait: &Wait| {
        let began = Instant::now();
        file.write_all(&vec![b'x'; wait.bytes])?;
        file.sync_data()?;
        Ok(began.elapsed())
    };
    waits.iter().map(|wait| sync(&mut file, wait)).collect()
}

/// A wait for the disk.
struct Wait {
    /// What was written since the last one.
    bytes: usize,
    took: Duration,
}

/// The disk of this machine, with a watch.
#[derive(Clone, Default)]
struct TimedDisk {
    waits: Arc<Mutex<Vec<Wait>>>,
}

impl Disk for TimedDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = RealDisk.open(path)?;
        Ok(Box::new(TimedFile { file, written: Mutex::new(0), waits: Arc::clone(&self.waits) }))
    }
}

struct TimedFile {
    file: Box<dyn DiskFile>,
    written: Mutex<usize>,
    waits: Arc<Mutex<Vec<Wait>>>,
}

impl DiskFile for TimedFile {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        self.file.read_at(place, bytes)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) += count;
        Ok(count)
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.file.keep(name, bytes)
    }

    fn sync(&self) -> BoxFuture<'static, io::Result<()>> {
        let bytes = std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner));
        let (began, sync, waits) = (Instant::now(), self.file.sync(), Arc::clone(&self.waits));
        async move {
            sync.await?;
            let took = began.elapsed();
            waits.lock().unwrap_or_else(PoisonError::into_inner).push(Wait { bytes, took });
            Ok(())
        }
        .boxed()
    }
}
