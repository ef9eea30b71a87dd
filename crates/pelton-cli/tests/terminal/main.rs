//! Sessions at a terminal, as people have them: the real program in a pseudo-terminal, a model of a screen that reads what it
//! writes, and a scripted model behind real HTTP.

#[path = "../cli/place.rs"]
#[allow(dead_code)] // The other program uses the rest.
mod place; // where a process under test runs, and what it leaves behind
#[path = "../cli/opened.rs"]
mod opened; // repositories that want something run
mod long; // a long session
mod seat; // somebody in front of a terminal

mod asking; // questions, and what answers them
mod beside; // side questions, another directory, a log on demand
mod commands; // slash commands
mod cost; // what it costs, by what it works
mod figures; // what people wait for, by the clock
mod first_light; // a prompt, an answer, a tree, a question, the end
mod habits; // what people bring along from elsewhere
mod heard; // what hooks hear of somebody in front
mod hostile; // what comes from outside
mod hostile_repositories; // what a repository wants run, opened by somebody who does not trust it
mod hostile_sides; // the same, from every side it can come from
mod leaving; // the terminal as it was
mod looks; // colours, and a status line of one's own
mod opening; // how a session is begun and gone on with
mod plain; // line by line
mod prompt; // what is written, seen and read
mod scrollback; // every finished line once
mod sums; // what was spent, and by whom
mod steering; // while it works
mod trust; // what a repository supplies, before it is trusted
mod trouble; // what goes wrong, or on beside
mod working; // a day's work
