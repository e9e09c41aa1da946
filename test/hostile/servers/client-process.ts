/**
 * The client under attack, in a process of its own: warms up on an honest server of the same kind, then does what the host of one
 * attack does, and measures what that costs. Arguments: the attack's key, the hostile URL (or nothing), the honest URL.
 */
import { fileURLToPath } from 'node:url'
import { type Client, type Command, ConnectionError, type ConnectOptions, connect, McpError } from 'vivarium/client'
import { type Attack, type Host, must, Traced } from './attack.ts'
import { attacks } from './attacks.ts'
import { measure } from './measure.ts'

const [key = '', url = '', honest = ''] = process.argv.slice(2)
const attack = attacks.find(candidate => candidate.key === key)
must(attack !== undefined, `There is no attack ${key}`)
const traced = new Traced()
const open: Client[] = []
// Whatever the client does not catch would end its host.
process.on('unhandledRejection', error => report({ well: false, detail: `unhandled: ${String(error)}` }))
process.on('uncaughtException', error => report({ well: false, detail: `uncaught: ${String(error)}` }))

function program(name: string, onLine?: (line: string) => void): Command {
  const script = fileURLToPath(new URL('./hostile-process.ts', import.meta.url))
  return { command: process.execPath, args: [script, name], stderr: onLine ?? 'ignore' }
}

async function opened(target: string | Command, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect(target, { timeout: '10s', ...options, onTrace: traced.note })
  open.push(client)
  return client
}

const host: Host = {
  traced,
  connect: options => opened(url === '' ? program(key) : url, options),
  start: (name, options, onLine) => opened(program(name, onLine), options),
  async refused(call, ...kinds) {
    const error: unknown = await call.then(
      value => new Error(`accepted: ${JSON.stringify(value)?.slice(0, 100)}`),
      reason => reason,
    )
    must(error instanceof McpError || error instanceof ConnectionError, `${String(error).slice(0, 200)}`)
    must(kinds.includes(error.kind), `refused as ${error.kind}, not ${kinds.join(' or ')}: ${error.message.slice(0, 200)}`)
    must(error.message.length <= 1_200, `refused in ${error.message.length} characters`)
    must(!/[\u0000-\u001f\u007f]/.test(error.message), 'refused with control characters in the message')
    return error.kind
  },
  async fine(client) {
    const { text } = await client.callTool('fine')
    must(text === 'fine', `an honest call gave ${JSON.stringify(text).slice(0, 100)}`)
  },
}

/** What a client loads and compiles when it is first used is not the attack's doing. */
async function warmUp(): Promise<void> {
  for (const target of url === '' ? [honest, program('honest')] : [honest]) {
    const client = await connect(target, { validateArguments: true, onLog: () => {} })
    for (let round = 0; round < 20; round++) {
      for await (const _ of client.tools());
      await client.callTool('fine')
    }
    await client.close()
  }
}

async function run({ act }: Attack): Promise<{ well: boolean; detail: string }> {
  try {
    return { well: true, detail: await act(host) }
  } catch (error) {
    return { well: false, detail: `${String(error)} (traced: ${traced})` }
  }
}

function report(outcome: object): never {
  process.send?.(outcome)
  process.exit(0)
}

await warmUp()
const end = measure()
const outcome = await run(attack)
const cost = end()
await Promise.all(open.map(client => client.close().catch(() => {})))
report({ ...outcome, cost })
