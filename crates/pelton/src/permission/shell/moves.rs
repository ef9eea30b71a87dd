//! Commands that change the directory, and whether they do so for certain.

use pelton_shell::{Command, Redirection, RedirectionKind};

use super::arg::{Arg, Files};

/// Where a command goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Move {
    To(Files),
    /// `cd -`, `popd`: to where it was before. A command is not told where somebody else was, so that is where the line has been.
    Back,
    /// Nobody knows.
    Somewhere,
}

/// `cd`, and what is like it.
pub(super) fn moves(plain: &[Arg]) -> Option<Move> {
    let (name, rest) = plain.split_first()?;
    match name.literal()? {
        "cd" => {
            let is_option =
                |arg: &&Arg| matches!(arg.literal(), Some("-L" | "-P" | "--" | "-e" | "-LP" | "-PL"));
            let targets: Vec<&Arg> = rest.iter().skip_while(is_option).collect();
            Some(match targets.as_slice() {
                [] => Move::To(Files::InHome(String::new())),
                [target] if target.literal() == Some("-") => Move::Back,
                [target] if target.literal() == Some("") => Move::Somewhere,
                [target] if target.literal().is_some_and(|text| text.starts_with(['-', '+'])) => {
                    Move::Somewhere
                }
                [target] => match target.files() {
                    Some(files @ (Files::Named(_) | Files::InHome(_) | Files::InRepository { .. })) => {
                        Move::To(files)
                    }
                    _ => Move::Somewhere,
                },
                _ => Move::Somewhere,
            })
        }
        "pushd" => Some(match rest {
            [] => Move::Back,
            [target]
                if target.literal().is_some_and(|text| !text.starts_with(['-', '+']) && !text.is_empty()) =>
            {
                target.files().map_or(Move::Somewhere, Move::To)
            }
            _ => Move::Somewhere,
        }),
        "popd" if rest.is_empty() => Some(Move::Back),
        "popd" => Some(Move::Somewhere),
        _ => None,
    }
}

/// Whether a command runs whatever else happens, in the shell of the line itself. One whose redirection fails does not.
pub(super) fn certainly_runs(command: &Command) -> bool {
    let place = command.place;
    let may_not = place.conditional || place.nested || place.in_substitution || place.in_background;
    let cannot_fail = |redirection: &Redirection| {
        redirection.kind == RedirectionKind::Write && redirection.target.literal() == Some("/dev/null")
    };
    !may_not && command.redirections.iter().all(cannot_fail)
}
