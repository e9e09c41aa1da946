/**
 * `npm run bench`: how much CPU MCP costs with us, with the official SDKs and with mcp-lite, measured against a hand-written
 * loop on plain Node (the floor). Every server and client is a process of its own; this one generates the load,
 * checks each answer, and takes turns between the contenders.
 */
import { writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { built, chooseContenders } from './contenders.ts'
import { readOptions, wanted } from './options.ts'
import { guard } from './processes.ts'
import { failures, report } from './report.ts'
import type { Results } from './results.ts'
import { measureCheckpoints } from './sections/checkpoints.ts'
import { measureClients } from './sections/clients.ts'
import { measureColdStart } from './sections/cold.ts'
import { measureConsole } from './sections/console.ts'
import { measureEvents } from './sections/events.ts'
import { measureGateway } from './sections/gateway.ts'
import { measureIdempotency } from './sections/idempotency.ts'
import { measureManifest } from './sections/manifest.ts'
import { measurePlain } from './sections/plain.ts'
import { measureReferences } from './sections/references.ts'
import { measureRollback } from './sections/rollback.ts'
import { measureServers } from './sections/server.ts'
import { measureSessions } from './sections/sessions.ts'
import { measureState } from './sections/state.ts'
import { measureStreaming } from './sections/streaming.ts'
import { measureTasks } from './sections/tasks.ts'

const options = readOptions(process.argv.slice(2))
guard(options.timing.watchdogMs)

if (options.against !== undefined) {
  const { runAgainst } = await import('./against/run.ts')
  const fine = await runAgainst(options, options.against).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error))
    return false
  })
  process.exit(fine ? 0 : 1)
}

const contenders = chooseContenders(options)
const started = performance.now()
const results: Results = {
  node: process.version,
  when: new Date().toISOString(),
  quick: options.quick,
  notes: [`${availableParallelism()} cores, load average ${loadavg()[0]?.toFixed(2)} at the start`],
  server: [],
  cold: [],
  sessions: [],
  clients: [],
  idempotency: [],
  manifest: [],
  plain: [],
  state: [],
  rollback: [],
  checkpoints: [],
  events: [],
  references: [],
  streaming: [],
  tasks: [],
  gateway: [],
  console: [],
}
if (!built()) results.notes.push('vivarium: not built, skipped')
if (options.quick) results.notes.push('--quick: short rounds, good for a smoke test, too short for claims')

/** Rows come one by one over minutes: a line each shows that something happens. */
function progress<Row>(rows: Row[], name: string): (row: Row) => void {
  return row => {
    rows.push(row)
    const seconds = ((performance.now() - started) / 1000).toFixed(0)
    if (process.stderr.isTTY) process.stderr.write(`\r${name} ${rows.length} after ${seconds} s   \r`)
  }
}

const sections: Record<string, () => Promise<void>> = {
  server: () => measureServers(options, contenders, progress(results.server, 'server row')),
  cold: () => measureColdStart(options, contenders, progress(results.cold, 'cold start')),
  sessions: () => measureSessions(options, contenders, progress(results.sessions, 'sessions')),
  clients: () => measureClients(options, progress(results.clients, 'client row')),
  idempotency: async () => {
    if (built()) await measureIdempotency(options, progress(results.idempotency, 'store'))
  },
  manifest: async () => {
    if (built()) await measureManifest(options, progress(results.manifest, 'manifest'))
  },
  plain: () => measurePlain(options, progress(results.plain, 'plain row')),
  state: async () => {
    if (built()) await measureState(options, progress(results.state, 'state'))
  },
  rollback: async () => {
    if (!built()) return
    await measureRollback(options, progress(results.rollback, 'rollback'))
    await measureCheckpoints(options, progress(results.checkpoints, 'checkpoints'))
  },
  events: async () => {
    if (built()) await measureEvents(options, progress(results.events, 'events row'))
  },
  references: async () => {
    if (built()) await measureReferences(options, progress(results.references, 'references row'))
  },
  streaming: async () => {
    if (built()) await measureStreaming(options, progress(results.streaming, 'streaming row'))
  },
  tasks: async () => {
    if (built()) await measureTasks(options, progress(results.tasks, 'tasks row'))
  },
  gateway: async () => {
    if (built()) await measureGateway(options, progress(results.gateway, 'gateway row'))
  },
  console: async () => {
    if (built()) await measureConsole(options, progress(results.console, 'console row'))
  },
}
for (const [name, measure] of Object.entries(sections)) {
  if (!wanted(options, name)) continue
  if (performance.now() - started < options.timing.lastStartMs) await measure()
  else results.notes.push(`${name}: skipped, the machine is too busy for it in a quick run`)
}

console.log(report(results))
console.log(
  `\n${[...results.notes, ''].join('\n')}${((performance.now() - started) / 1000).toFixed(0)} s on Node ${process.version}`,
)
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, undefined, 2)}\n`)
process.exit(failures(results).length > 0 ? 1 : 0)
