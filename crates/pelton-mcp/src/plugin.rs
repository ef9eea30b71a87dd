//! Servers that plugins bring. Pure.

use pelton::plugins::Plugin;
use serde_json::Value;

use crate::config::{Reach, Read, Scope, read_servers};

/// The variables a plugin is told of itself.
const ROOT: &str = "CLAUDE_PLUGIN_ROOT";
const DATA: &str = "CLAUDE_PLUGIN_DATA";

/// Reads what a plugin names. Its servers are called `plugin:<plugin>:<server>`; `variable` knows what stands for `${NAME}`
/// besides what the plugin is told of itself.
///
/// ```
/// use pelton::plugins::Plugin;
/// use pelton_mcp::{Reach, servers_of_plugin};
///
/// let dir = tempfile::tempdir()?;
/// let written = r#"{"files": {"command": "${CLAUDE_PLUGIN_ROOT}/serve"}}"#;
/// std::fs::write(dir.path().join(".mcp.json"), written)?;
/// std::fs::create_dir(dir.path().join(".claude-plugin"))?;
/// std::fs::write(dir.path().join(".claude-plugin/plugin.json"), r#"{"name": "kit"}"#)?;
/// let plugin = Plugin::read(dir.path(), "inline", dir.path()).unwrap();
/// let read = servers_of_plugin(&plugin, |_| None);
/// let Reach::Program(program) = &read.servers[0].reach else { panic!() };
/// assert_eq!(read.servers[0].name, "plugin:kit:files");
/// assert!(program.command.ends_with("/serve") && !program.command.contains('$'));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn servers_of_plugin(plugin: &Plugin, variable: impl Fn(&str) -> Option<String>) -> Read {
    let own = [(ROOT, plugin.root.display().to_string()), (DATA, plugin.data.display().to_string())];
    let known = |name: &str| {
        let of_plugin = match name.strip_prefix("user_config.") {
            Some(key) => plugin.option(key).map(str::to_owned),
            None => own.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone()),
        };
        of_plugin.or_else(|| variable(name))
    };
    let named = |server: &str| format!("plugin:{}:{server}", plugin.name);
    let mut all = Read::default();
    for servers in &plugin.servers {
        let read = read_servers(&Value::Object(servers.clone()), Scope::Plugin, known);
        all.warnings.extend(read.warnings);
        all.errors.extend(read.errors.into_iter().map(|(name, why)| (named(&name), why)));
        for name in read.of_client {
            all.errors.push((named(&name), "is of type 'sdk', which only a client has".to_owned()));
        }
        for mut server in read.servers {
            server.name = named(&server.name);
            if let Reach::Program(program) = &mut server.reach {
                program.env.extend(own.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
                program.env.extend(plugin.option_variables());
            }
            all.servers.push(server);
        }
    }
    all
}
