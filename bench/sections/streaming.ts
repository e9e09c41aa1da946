/** When the first chunk of a result is there, and when all of it: from the call to our client's loop, beside plain chunked HTTP on Node. */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect } from 'vivarium/client'
import type { Options } from '../options.ts'
import { type Child, launch, STEP_MS, within } from '../processes.ts'
import { failure, type StreamRow } from '../results.ts'
import { quantile } from '../stats.ts'

const CHUNKS = 20
const PAUSE_MS = 5

/** Milliseconds to the first chunk, and to the end. */
type Times = readonly [first: number, whole: number]
type Caller = () => Promise<Times>

export async function measureStreaming({ quick }: Options, row: (row: StreamRow) => void): Promise<void> {
  const calls = quick ? 10 : 100
  const kinds = { floor: floorCaller, '2025-11-25': streamingCaller('2025-11-25'), '2026-07-28': streamingCaller('2026-07-28') }
  for (const [way, open] of Object.entries(kinds))
    row({ way, cells: { streaming: await measured(way === 'floor' ? 'floor' : 'vivarium', open, calls).catch(failure) } })
}

/** A server of streams, and its address. */
export async function startStreaming(
  kind: string,
  pauseMs: number,
  flags?: readonly string[],
): Promise<{ child: Child; url: string }> {
  const child: Child = launch('servers/streaming.mjs', [kind, String(CHUNKS), String(pauseMs)], flags)
  const [said] = await within(STEP_MS, kind, Promise.race([once(child.process.stdout, 'data'), child.gone]))
  return { child, url: `http://127.0.0.1:${/\d+/.exec(String(said))?.[0]}/mcp` }
}

async function measured(kind: string, open: (url: string) => Promise<Opened>, calls: number) {
  const { child, url } = await startStreaming(kind, PAUSE_MS)
  try {
    const { call, close } = await open(url)
    for (let warm = 0; warm < 10; warm++) await call()
    const times: Times[] = []
    for (let at = 0; at < calls; at++) times.push(await within(STEP_MS, kind, call()))
    await close()
    const of = (which: 0 | 1, q: number): number =>
      quantile(
        times.map(each => each[which]),
        q,
      )
    return { firstMs: of(0, 0.5), firstP99Ms: of(0, 0.99), wholeMs: of(1, 0.5) }
  } finally {
    await child.stop()
  }
}

export interface Opened {
  readonly call: Caller
  close(): Promise<void>
}

export function streamingCaller(revision: '2025-11-25' | '2026-07-28'): (url: string) => Promise<Opened> {
  return async url => {
    const mcp = await connect(url, { revisions: [revision] })
    const call = async (): Promise<Times> => {
      const began = performance.now()
      let first: number | undefined
      const stream = mcp.streamTool('work')
      for await (const _ of stream) first ??= performance.now() - began
      await stream.result
      return [first ?? Number.NaN, performance.now() - began]
    }
    return { call, close: () => mcp.close() }
  }
}

async function floorCaller(url: string): Promise<Opened> {
  const agent = new Agent({ keepAlive: true })
  const call = (): Promise<Times> =>
    new Promise((resolve, reject) => {
      const began = performance.now()
      let first: number | undefined
      const asking = request(url, { method: 'POST', agent }, response => {
        response.on('data', () => {
          first ??= performance.now() - began
        })
        response.on('end', () => resolve([first ?? Number.NaN, performance.now() - began]))
      })
      asking.on('error', reject)
      asking.end('{}')
    })
  return { call, close: async () => agent.destroy() }
}
