/**
 * What an event costs that is delivered over HTTP to so many subscribers, beside the least that it can cost. Every server is a
 * process of its own, whose CPU is what counts; the readers are in this one. To many goes one event at a time, so that its
 * latency is that of its own delivery; to one as many as the window. On Postgres one process emits, and its subscribers and those of another one hear of it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../test/real-postgres.ts'
import { type EventReader, readEvents } from '../load/event-readers.ts'
import type { Options } from '../options.ts'
import { type Child, cpuMicros, launch, STEP_MS, within } from '../processes.ts'
import { type EventFigures, type EventRow, failure } from '../results.ts'
import { median, quantile } from '../stats.ts'
import type { Revision } from '../work.ts'

const WINDOW = 64
/** In a quick run. */
const FEW = 100
const shapes = [
  ['memory', '2026-07-28', 1],
  ['memory', '2026-07-28', 1_000],
  ['memory', '2025-11-25', 1_000],
  ['sqlite', '2026-07-28', 1_000],
  ['postgres', '2026-07-28', 1_000],
  ['postgres', '2025-11-25', 1_000],
] as const

type Row = (row: EventRow) => void

export async function measureEvents(options: Options, row: Row): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-bench-'))
  const floors = new Map<string, EventRow['cells'][string]>()
  try {
    for (const [store, revision, wanted] of shapes) {
      const subscribers = options.quick ? Math.min(wanted, FEW) : wanted
      // A stream is a stream: the floor knows no wires.
      const place = `${subscribers}`
      if (!floors.has(place)) floors.set(place, await floor(options, subscribers).catch(failure))
      const ours = await onStore(options, store, folder, revision, subscribers).catch(failure)
      const processes = store === 'postgres' ? 2 : 1
      row({ store, revision, subscribers, processes, cells: { floor: floors.get(place) ?? failure('none'), vivarium: ours } })
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function floor(options: Options, subscribers: number): Promise<EventFigures> {
  return measured(options, [{ script: 'servers/floor-events.mjs', args: [] }], '2026-07-28', subscribers)
}

async function onStore(
  options: Options,
  store: string,
  folder: string,
  revision: Revision,
  subscribers: number,
): Promise<EventFigures> {
  const script = 'servers/events.mjs'
  if (store === 'memory') return measured(options, [{ script, args: ['memory:'] }], revision, subscribers)
  if (store === 'sqlite')
    return measured(options, [{ script, args: [`sqlite:${join(folder, `${revision}.db`)}`] }], revision, subscribers)
  const database = await startPostgres({ synced: true })
  try {
    const one = { script, args: [`${database.url}?schema=bench`] }
    return await measured(options, [one, one], revision, subscribers)
  } finally {
    await database.stop()
  }
}

interface Started {
  readonly script: string
  readonly args: readonly string[]
}

async function measured(
  { timing }: Options,
  started: readonly Started[],
  revision: Revision,
  subscribers: number,
): Promise<EventFigures> {
  const servers: EventServer[] = []
  const readers: EventReader[] = []
  try {
    // One after the other: the first makes the tables.
    for (const { script, args } of started) servers.push(await startEventServer(script, args))
    for (let at = 0; at < subscribers; at++) {
      const { url } = servers[at % servers.length] as EventServer
      readers.push(await readEvents(url, revision))
    }
    const bench = rounds(servers, readers)
    await bench(timing.roundMs)
    const all: EventFigures[] = []
    for (let at = 0; at < timing.rounds; at++) all.push(await bench(timing.roundMs))
    const of = (figure: keyof EventFigures): number => median(all.map(round => round[figure]))
    return { emitsPerSecond: of('emitsPerSecond'), deliveriesPerCpuSecond: of('deliveriesPerCpuSecond'), p99Ms: of('p99Ms') }
  } finally {
    for (const reader of readers) reader.end()
    await Promise.all(servers.map(({ child }) => child.stop()))
  }
}

function rounds(servers: readonly EventServer[], readers: readonly EventReader[]): (ms: number) => Promise<EventFigures> {
  let emitted = 0
  const window = readers.length === 1 ? WINDOW : 1
  const arrived = async (): Promise<void> => {
    while (readers.some(reader => reader.heard() < emitted)) await new Promise(resolve => setImmediate(resolve))
  }
  const cpu = (): number => servers.reduce((sum, { child }) => sum + cpuMicros(child.pid), 0)
  return async ms => {
    for (const { latencies } of readers) latencies.length = 0
    const [began, used, before] = [performance.now(), cpu(), emitted]
    while (performance.now() - began < ms) {
      emitted += window
      await within(STEP_MS, 'emit', (servers[0] as EventServer).emit(window))
      await within(STEP_MS, 'deliver', arrived())
    }
    const count = emitted - before
    return {
      emitsPerSecond: (count / (performance.now() - began)) * 1000,
      deliveriesPerCpuSecond: (count * readers.length) / ((cpu() - used) / 1e6),
      p99Ms: quantile(
        readers.flatMap(({ latencies }) => latencies),
        0.99,
      ),
    }
  }
}

export interface EventServer {
  readonly child: Child
  readonly url: string
  emit(count: number): Promise<void>
}

export async function startEventServer(script: string, args: readonly string[], flags?: readonly string[]): Promise<EventServer> {
  const child = launch(script, args, flags)
  const lines: ((line: string) => void)[] = []
  const line = (): Promise<string> => Promise.race([new Promise<string>(resolve => void lines.push(resolve)), child.gone])
  let text = ''
  child.process.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      lines.shift()?.(text.slice(0, end))
      text = text.slice(end + 1)
    }
  })
  const port = (await within(STEP_MS, script, line())).replace('ready ', '')
  return {
    child,
    url: `http://127.0.0.1:${port}/mcp`,
    emit: async count => {
      const done = line()
      child.process.stdin.write(`${count}\n`)
      await done
    },
  }
}
