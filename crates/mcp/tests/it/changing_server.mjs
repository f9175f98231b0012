// An MCP server on the official SDK, for the opt-in tests: its list of tools changes while it runs, and it can crash.
// usage: node changing_server.mjs FOLDER, where npm has installed the SDK
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const installed = createRequire(join(process.argv[2], "any.js"));
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = await load("zod");

const server = new McpServer({ name: "changing", version: "1" });
const says = (text) => ({ content: [{ type: "text", text }] });

server.registerTool("add", { description: "Adds a tool.", inputSchema: { name: z.string() } }, async ({ name }) => {
  server.registerTool(name, { description: "An added tool.", inputSchema: {} }, async () => says(`${name} ran`));
  return says(`added ${name}`);
});
server.registerTool("fail", { description: "Fails.", inputSchema: {} }, async () => {
  throw new Error("it failed");
});
server.registerTool("crash", { description: "Ends the process.", inputSchema: {} }, async () => process.exit(3));

await server.connect(new StdioServerTransport());
