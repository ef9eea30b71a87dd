//! Options of programs that read the same command lines, and that mean nothing here: they are accepted, and it is said that they
//! are ignored. What would change where or what is run is no such option.

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ElsewhereArgs {
    #[arg(long, hide = true)]
    ide: bool,
    #[arg(long, hide = true)]
    chrome: bool,
    #[arg(long, hide = true)]
    no_chrome: bool,
    #[arg(long, hide = true)]
    tmux: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    remote_control: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    prompt_suggestions: Option<String>,
    #[arg(long, hide = true)]
    teammate_mode: Option<String>,
    #[arg(long, hide = true)]
    channels: Option<String>,
    #[arg(long, hide = true)]
    advisor: Option<String>,
}

impl ElsewhereArgs {
    /// Those that were given.
    pub fn ignored(&self) -> Vec<&'static str> {
        let given = [
            (self.ide, "--ide"),
            (self.chrome, "--chrome"),
            (self.no_chrome, "--no-chrome"),
            (self.tmux, "--tmux"),
            (self.remote_control.is_some(), "--remote-control"),
            (self.prompt_suggestions.is_some(), "--prompt-suggestions"),
            (self.teammate_mode.is_some(), "--teammate-mode"),
            (self.channels.is_some(), "--channels"),
            (self.advisor.is_some(), "--advisor"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name).collect()
    }
}
