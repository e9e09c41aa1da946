/** What the official conformance suite asks a client to do, by the name of the scenario. */
import type { Client, ConnectOptions, Tool } from 'vivarium/client'

type Context = Readonly<Record<string, unknown>>

export interface Scenario {
  /** What this client says that it can do. */
  readonly options: ConnectOptions
  readonly act: (mcp: Client, context: Context) => Promise<unknown>
}

/** Answers whatever it is asked: forms with their defaults, models with a word. */
const answering: ConnectOptions = {
  onElicit: ({ mode }) => (mode === 'form' ? { action: 'accept', content: {} } : { action: 'decline' }),
  onSample: () => ({
    role: 'assistant',
    content: { type: 'text', text: 'Paris' },
    model: 'everything-client',
    stopReason: 'endTurn',
  }),
  roots: [{ uri: 'file:///workspace', name: 'workspace' }],
}

const scenarios = new Map<string, Scenario>([
  ['initialize', { options: {}, act: listTools }],
  ['tools_call', { options: {}, act: addNumbers }],
  [
    'elicitation-sep1034-client-defaults',
    { options: answering, act: mcp => mcp.callTool('test_client_elicitation_defaults', {}) },
  ],
  ['sse-retry', { options: {}, act: mcp => mcp.callTool('test_reconnection', {}) }],
  ['json-schema-2020-12-preservation', { options: {}, act: echoSchema }],
  ['request-metadata', { options: answering, act: listTools }],
  ['http-standard-headers', { options: {}, act: useEverything }],
  ['http-custom-headers', { options: {}, act: callAsTold }],
  ['http-invalid-tool-headers', { options: {}, act: callEveryTool }],
  ['json-schema-ref-no-deref', { options: {}, act: listTools }],
  ['sep-2322-client-request-state', { options: { ...answering, onElicit: confirm }, act: answerInRounds }],
])

/** Unknown names get what most scenarios want: a list, and a call of `test-tool`. */
export function scenarioNamed(name: string): Scenario {
  return scenarios.get(name) ?? { options: {}, act: callTestTool }
}

async function listTools(mcp: Client): Promise<readonly Tool[]> {
  const tools: Tool[] = []
  for await (const tool of mcp.tools()) tools.push(tool)
  return tools
}

async function callTestTool(mcp: Client): Promise<void> {
  await listTools(mcp)
  await mcp.callTool('test-tool', {})
}

async function addNumbers(mcp: Client): Promise<void> {
  await listTools(mcp)
  await mcp.callTool('add_numbers', { a: 5, b: 3 })
}

async function echoSchema(mcp: Client): Promise<void> {
  const tools = await listTools(mcp)
  const tool = tools.find(({ name }) => name === 'json_schema_2020_12_tool')
  if (tool === undefined) throw new Error('The server does not list json_schema_2020_12_tool')
  await mcp.callTool('json_schema_echo', { schema: tool.inputSchema })
}

async function useEverything(mcp: Client): Promise<void> {
  await callEveryTool(mcp)
  for await (const { uri } of mcp.resources()) await mcp.readResource(uri)
  for await (const { name } of mcp.prompts()) await mcp.getPrompt(name)
}

async function callEveryTool(mcp: Client): Promise<void> {
  for (const tool of await listTools(mcp)) await mcp.callTool(tool.name, exampleOf(tool))
}

async function callAsTold(mcp: Client, context: Context): Promise<void> {
  await listTools(mcp)
  const calls = context['toolCalls']
  if (!Array.isArray(calls)) throw new Error('MCP_CONFORMANCE_CONTEXT has no toolCalls')
  for (const { name, arguments: args } of calls) await mcp.callTool(name, args)
}

async function answerInRounds(mcp: Client): Promise<void> {
  await listTools(mcp)
  // Both at once: what belongs to one call must not get into the other.
  await Promise.all([mcp.callTool('test_mrtr_echo_state', {}), mcp.callTool('test_mrtr_unrelated', {})])
  await mcp.callTool('test_mrtr_no_state', {})
  await mcp.callTool('test_mrtr_no_result_type', {})
}

function confirm(): { action: 'accept'; content: { confirmed: boolean } } {
  return { action: 'accept', content: { confirmed: true } }
}

/** Something for each argument that a tool requires. */
function exampleOf({ inputSchema }: Tool): Record<string, unknown> {
  const { required = [], properties = {} } = inputSchema as {
    readonly required?: readonly string[]
    readonly properties?: Readonly<Record<string, { readonly type?: string }>>
  }
  return Object.fromEntries(required.map(name => [name, exampleOfType(properties[name]?.type)]))
}

function exampleOfType(type: string | undefined): unknown {
  if (type === 'number' || type === 'integer') return 1
  if (type === 'boolean') return true
  return 'example'
}
