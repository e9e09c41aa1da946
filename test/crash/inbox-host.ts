/**
 * A host in a process of its own: `node inbox-host.ts '{"store": …, "servers": {…}}'`. Its model answers with the ids it read. Says
 * `serving` when the first server is connected, `up` when all are and its inbox runs, and ends when its standard input does.
 */
import { performance } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { createHost, type ModelMessage, type PushEvent, scripted, type Turn } from 'vivarium/host'

export interface InboxHostSpec {
  readonly store: string
  /** Addresses by name. */
  readonly servers: Readonly<Record<string, string>>
  /** How long the model takes, at most. */
  readonly modelMs: number
  /** As many at once, and in a time, as can be; without it the limits are the usual ones. */
  readonly unlimited?: boolean
  /** Servers whose turns are told, as `done ID`, once they are committed. */
  readonly tells?: readonly string[]
}

/** What it took since it was last asked, by a line on its standard input: of its event loop, and of all processors. */
export interface HostUse {
  readonly loop: number
  readonly cores: number
}

const spec = JSON.parse(process.argv[2] ?? '{}') as InboxHostSpec
const tells = new Set(spec.tells)
let serving = false

const model = scripted(({ messages }) => answerTo(messages.at(-1)), { latencyMs: [0, spec.modelMs], seed: process.pid })
const host = await createHost({
  store: spec.store,
  servers: spec.servers,
  model,
  policy: { servers: { '*': { enable: ['crash.*'] } } },
  conversationOf,
  inbox: {
    lease: '600ms',
    ...(spec.unlimited && { concurrency: 24, perServer: 8, rate: { perSecond: 1e6, burst: 1e6 } }),
  },
  onTurn: turn => void tell(turn),
  onServer: ({ status }) => {
    if (status !== 'up' || serving) return
    serving = true
    process.stdout.write('serving\n')
  },
  onTrouble: why => process.stderr.write(`${why.message}\n`),
})
await host.open()
process.stdout.write('up\n')
let since = { loop: performance.eventLoopUtilization(), cpu: process.cpuUsage() }
createInterface(process.stdin)
  .on('line', () => {
    const { user, system } = process.cpuUsage(since.cpu)
    const { utilization, active, idle } = performance.eventLoopUtilization(since.loop)
    const use: HostUse = { loop: utilization, cores: (user + system) / 1000 / (active + idle) }
    since = { loop: performance.eventLoopUtilization(), cpu: process.cpuUsage() }
    process.stdout.write(`use ${JSON.stringify(use)}\n`)
  })
  .once('close', async () => {
    await host.close()
    process.exit(0)
  })

/** One for each origin, and one for each set whose events have none. */
function conversationOf(server: string, { origin, featureSet }: PushEvent): string {
  return `${server}/${origin === undefined ? featureSet : String(origin['channel'])}`
}

/** An event is told between marks that name it. */
function answerTo(message: ModelMessage | undefined): string {
  const [first] = message?.role === 'user' ? message.content : []
  const text = first?.type === 'text' ? first.text : ''
  return `Heard of ${/ id="([^"]*)"/.exec(text)?.[1] ?? 'nothing'}`
}

async function tell({ from, done }: Turn): Promise<void> {
  if (from.kind !== 'event' || !tells.has(from.server)) return
  await done
  process.stdout.write(`done ${from.eventId}\n`)
}
