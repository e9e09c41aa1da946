/**
 * Connects to a server and prints what it offers: `everything-client URL`, or `everything-client COMMAND ARGS…`. In the
 * environment of the official conformance suite it does what the named scenario asks for instead, and in that of
 * `vivarium test --client` the steps of a play.
 */
import { type Client, connect, oauth, type RevisionId, type Target } from 'vivarium/client'
import { overview } from './overview.ts'
import { scenarioNamed } from './scenarios.ts'
import { signInFor } from './sign-in.ts'
import { playSteps } from './steps.ts'

const usage = `Usage: everything-client URL
       everything-client COMMAND [ARGUMENT…]

Connects to an MCP server by its http, https, ws or wss address, or starts it, and prints what it offers.`

const [first, ...rest] = process.argv.slice(2)
if (first === undefined || first === '--help' || first === '-h') {
  console.error(usage)
  process.exitCode = first === undefined ? 2 : 0
} else {
  // Whoever reads our output may have seen enough, as `head` does.
  process.stdout.on('error', () => process.exit(0))
  await run(isUrl(first) ? first : { command: first, args: rest }).catch((error: unknown) => {
    console.error(`${first}: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  })
}

async function run(target: Target): Promise<void> {
  const {
    MCP_CONFORMANCE_SCENARIO: name,
    MCP_CONFORMANCE_PROTOCOL_VERSION: version,
    MCP_CONFORMANCE_CONTEXT: context,
  } = process.env
  const revisions = version === undefined ? {} : { revisions: [version as RevisionId] }
  const { options, act } = name === undefined ? { options: {}, act: print } : scenarioNamed(name)
  const given = context === undefined ? {} : JSON.parse(context)
  if (Array.isArray(given.steps)) return playSteps(target, version, given)
  const auth = name === undefined ? oauth() : signInFor(name, given)
  const signIn = auth === undefined || typeof target !== 'string' ? {} : { auth }
  await using mcp = await connect(target, { ...options, ...revisions, ...signIn })
  await act(mcp, given)
}

async function print(mcp: Client): Promise<void> {
  for await (const line of overview(mcp)) console.log(line)
}

function isUrl(text: string): boolean {
  return /^(https?|wss?):\/\//.test(text)
}
