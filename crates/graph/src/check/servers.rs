//! MCP servers: that they can be reached, what their texts may read, and whom they may ask.

use super::Check;
use crate::codes;
use wonder_lang::def::{Isolation, McpServer, Name, Text};
use wonder_lang::problem::Problem;

impl Check<'_> {
    pub(super) fn servers(&mut self) {
        let servers = &self.bundle.mcp_servers;
        for (name, server) in servers {
            self.server(name, server);
        }
    }

    /// A server by a name that is written out. Where no server is defined at all, others may have it: hosts know.
    pub(super) fn known_server(&mut self, server: &Text) {
        let servers = &self.bundle.mcp_servers;
        if servers.is_empty() || server.text.contains("{{") || servers.contains_key(&server.text) {
            return;
        }
        self.unknown(codes::UNKNOWN_SERVER, server, "MCP server", servers.keys().map(|name| &**name));
    }

    fn server(&mut self, name: &Name, server: &McpServer) {
        let bad = match (server.command.is_empty(), &server.url) {
            (true, None) => Some("has neither a `command` nor a `url`"),
            (false, Some(_)) => Some("has a `command` and a `url`"),
            (true, Some(_)) if !server.env.is_empty() => Some("has a `url`, and `env` is for a `command`"),
            (false, None) if !server.headers.is_empty() => {
                Some("has a `command`, and `headers` are for a `url`")
            }
            (false, None) if server.isolation == Isolation::Container && server.image.is_none() => {
                Some("has `isolation: container` and no `image`")
            }
            _ => None,
        };
        if let Some(bad) = bad {
            let message = format!("the MCP server `{name}` {bad}");
            let problem = Problem::error(codes::BAD_SERVER, server.spot, message);
            self.report(problem.label("expected `command: [PROGRAM, ...]` or `url: https://...`"));
        }
        server.texts().for_each(|text| self.secrets_only(text, "an MCP server"));
        for (key, text) in server.env.iter().chain(&server.headers) {
            self.named_secret(key, text);
        }
        self.zero(server.timeout_ms, server.spot, "`timeout`");
        if let Some(sampling) = &server.sampling {
            self.known_model(&sampling.model);
            self.zero(sampling.max_tokens, server.spot, "`sampling.max_tokens`");
            self.zero(sampling.max_calls.map(u64::from), server.spot, "`sampling.max_calls`");
        }
    }
}
