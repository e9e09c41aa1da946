/** Starts the everything server: over HTTP with the old pair and WebSocket beside it, or on standard input and output. */
import { type Choice, choose, usage } from './arguments.ts'
import { createEverything } from './everything.ts'
import { addressesOf, welcome } from './welcome.ts'

const ssePath = '/sse'
const wsPath = '/ws'

const choice = chosen()
if (choice.mode === 'help') console.log(usage)
else if (choice.mode === 'stdio') await overStdio()
else await overHttp(choice).catch(refuse)

function chosen(): Choice {
  try {
    return choose(process.argv.slice(2))
  } catch (error) {
    console.error(`${messageOf(error)}\n\n${usage}`)
    process.exit(2)
  }
}

/** Says nothing of itself: standard output belongs to the protocol. */
async function overStdio(): Promise<void> {
  const server = createEverything()
  onSignal(() => server.close())
  await server.stdio()
  await server.close()
}

async function overHttp({ port, host, open }: Extract<Choice, { mode: 'http' }>): Promise<void> {
  const server = createEverything()
  const listening = await server.listen({ port, host, ssePath, wsPath, ...(open ? { auth: 'none' } : {}) })
  onSignal(() => server.close())
  console.log(welcome(addressesOf(listening.url, ssePath, wsPath), process.argv[1] ?? 'everything-server.js'))
}

/** The first signal ends in good order; a second one does not wait. */
function onSignal(close: () => Promise<void>): void {
  let closing = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (closing) process.exit(1)
      closing = true
      close().then(() => process.exit(0), refuse)
    })
  }
}

function refuse(error: unknown): never {
  console.error(messageOf(error))
  process.exit(1)
}

function messageOf(value: unknown): string {
  return value instanceof Error ? value.message : String(value)
}
