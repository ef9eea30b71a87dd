//! The engine from end to end: real HTTP to a scripted model, real tools, real files. One binary, because linking
//! costs more than running.

mod stage; // where a test takes place: directories, options, a scripted model, ways to look at what happened
mod probe; // tools whose running can be observed
mod clock; // a machine on which nobody waits
mod disk; // a disk that can be filled up

mod agents; // tasks for others
mod around; // moments around the conversation, and hooks that never agree
mod asking; // calls that somebody is asked about
mod broken; // streams that break after something was complete
mod brought_hooks; // hooks of skills and agents
mod cache; // what the server kept, and why it did not
mod calls; // what happens to tool calls
mod circles; // models that repeat themselves
mod compaction; // making room in the context
mod configuration; // what the host chooses reaches the model
mod deferring; // calls that hooks put off
mod displayed; // words that hooks hear of before they are shown
mod endings; // why it ends
mod examples; // the programs users start from
mod file_history; // what was done to files, and the way back
mod foresight; // likely calls, made ahead
mod hooks; // other people's programs around tools and at the end
mod house; // commands that are always there
mod host; // what it asks of the program around it
mod input; // commands, mentions, pictures and hooks on the way to the model
mod interrupts; // stopping in the middle
mod ladders; // errors the loop climbs out of
mod large; // results too long to be told
mod late; // permissions answered after a restart
mod media; // pictures that fit, and what happens to those that do not
mod memory; // what files tell it about the project and its user
mod moments; // every moment that hooks are called at, and hooks that are no programs
mod money; // what a run may cost, and did
mod permissions; // what may be looked at and changed, and what not
mod planning; // plan mode, and questions to the user
mod prefix; // what stands in front of every request stays as it is
mod promptly; // how long an interrupt takes, wherever it strikes
mod queue; // prompts that come while it is busy
mod records; // what is on disk
mod replay; // what was said is sent again as it was
mod resumed_prefix; // what is sent when another process goes on
mod resuming; // going on from it
mod retries; // answers that do not come at once
mod servers; // tools that somebody else serves
mod signed; // requests that are signed as a whole
mod skills; // texts that users and the model call by name
mod status; // what can be seen from outside while it runs
mod streams; // answers as they arrive, whole and broken
mod strange; // servers that count, number and name in ways of their own
mod structured; // answers in the form of a schema
mod task_budget; // the tokens a task may take, as the model is told
mod summaries; // what calls came to, in a line
mod tasks; // things to do
mod turns; // why the loop goes on
mod waits; // how long another attempt is waited for
mod weather; // all of it at random
mod web; // pages and searches
