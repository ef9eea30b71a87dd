//! The `pelton` command as its users meet it: a real process, real pipes and signals, and a scripted model behind
//! real HTTP. One program, so that it is linked once.

mod place; // where a process under test runs, and what it leaves behind
mod opened; // repositories that want something run
mod talk; // a client at the other end of two pipes

mod agents; // sub-agents, as clients see them
mod arriving; // servers of tools that take their time
mod bad_input; // what cannot be meant, told in one line
mod background; // commands that run beside the conversation
mod calls; // how the loop goes about calls
mod contract; // what clients build on, whatever happens
mod config; // `pelton config`
mod context; // what fills the context, and from where on it is made smaller
mod control; // what a client and pelton ask of each other
mod crash; // killed in the middle, and gone on with
mod crash_points; // killed at every point that has a name
mod credentials; // who pays, and what happens when that runs out
mod branches; // conversations that begin anew, or go on from elsewhere
mod damage; // records that something happened to
mod edited; // records that somebody wrote in
mod debug; // what is noted of a session
mod demo; // `pelton demo`
mod frames; // stream-json and json, field by field
mod going_on; // where a session is looked for
mod hardship; // full disks, foreign users, odd files
mod hooks; // hooks from settings
mod hostile; // repositories that want something run
mod idle; // what waiting costs
mod joining; // what joins a session that runs, and what is said first
mod keys; // settings, key by key
mod loop_scenarios; // what the loop does about trouble, as flags and frames show it
mod manner; // how the model works and answers, and which may be asked
mod looking; // what runs unasked, run
mod mcp; // `pelton mcp`
mod memory; // what files tell the model
mod mock; // `pelton mock`
mod patience; // how patient a run is, and how fast its answers come
mod piped; // a whole session through pipes
mod permission; // what runs without anybody to ask
mod permissions; // `pelton permissions`
mod plugins; // folders that bring skills, agents, hooks and programs
mod sandbox; // commands in a box
mod rewind; // files as they were
mod screen; // what people see on a terminal
mod secure; // certificates: read when needed, and no sooner
mod settings; // settings files: which count, and what wins
mod shelf; // past sessions, listed, exported, mended and taken away
mod shop; // `pelton plugin`, and what is told of an installation
mod signals; // interrupt, terminate, hang up
mod sources; // whose settings and instructions count
mod summaries; // lines about what calls came to
mod task; // one task, from the prompt to the answer
mod trust; // what a directory may add
mod trouble; // what goes wrong outside, told in one line
mod wire; // what clients may ask and are told, beyond the everyday
mod working_as; // the agent that a session works as, through several processes
mod words; // the command line itself
