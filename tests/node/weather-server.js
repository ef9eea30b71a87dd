// A server of tools, made with the official SDK of the protocol as its users make them, and reached through its standard streams.

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "weather", version: "1.0.0" });
server.registerTool("forecast", { description: "Tells tomorrow's weather.", inputSchema: { city: z.string() } }, async ({ city }) => ({
  content: [{ type: "text", text: `${city}: ${process.env.DEGREES ?? 290} K` }],
}));
server.registerResource("today", "ui://weather/today", { mimeType: "text/html" }, async (uri) => ({
  contents: [{ uri: uri.href, mimeType: "text/html", text: "<p>Sunny</p>" }],
}));
await server.connect(new StdioServerTransport());
