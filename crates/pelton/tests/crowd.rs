//! Many sessions in one process. A program of its own: what it weighs is what they weigh.

use futures::StreamExt;
use pelton::transcript::Durability;
use pelton::{Engine, Event, Options, Prompt, Sessions};
use pelton_model::{Auth, Endpoint, Secret};
use pelton_testkit::{Script, Step, text};

/// Sessions that wait for their next prompt.
const SESSIONS: usize = 200;
/// What all of them together may have in memory, with the program around them and a scripted model beside them.
const MEMORY_KB_MAX: u64 = 300 * 1000;

fn memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    resident.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn pit_M4_two_hundred_sessions_wait_in_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let model = Script::new().step(Step::reply([text("Hello.")]).always()).start().await.unwrap();
    let mut engines = Vec::new();
    for _ in 0..SESSIONS {
        let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
        let mut options = Options::new(dir.path(), endpoint);
        options.sessions =
            Some(Sessions { config_dir: dir.path().join("config"), durability: Durability::Fast });
        options.file_history = Some(Default::default());
        let mut engine = Engine::new(options).unwrap();
        // Each has been used: what a session keeps between prompts, it keeps.
        let events = engine.submit(Prompt::text("hi").unwrap());
        let answered = events.any(async |event| matches!(event, Event::Result(outcome) if !outcome.is_error));
        assert!(answered.await);
        engines.push(engine);
    }
    let memory = memory_kb();
    println!("{SESSIONS} sessions: {memory} kB");
    assert!(memory <= MEMORY_KB_MAX, "{memory} kB");
    // They are not merely there.
    let mut last = engines.pop().unwrap();
    let events = last.submit(Prompt::text("again").unwrap());
    assert!(events.any(async |event| matches!(event, Event::Result(outcome) if !outcome.is_error)).await);
}
