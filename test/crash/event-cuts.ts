/** Events to a subscriber whose line is cut again and again while they are emitted: each must arrive once, and in order. */
import { join } from 'node:path'
import { connect } from '../../src/client/index.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer } from '../../src/server/index.ts'
import { cuttingProxy } from '../cutting-proxy.ts'

export interface EventCuts {
  readonly revision: RevisionId
  readonly events: number
  readonly cuts: number
  /** Where the store lies. */
  readonly folder: string
}

export interface EventCutsReport {
  readonly heard: number
  readonly missing: number
  readonly doubled: number
  readonly disordered: number
  /** Events that said that something before them is lost. */
  readonly truncated: number
}

/** How long the line may be silent before what is missing counts as lost. */
const waitMs = 60_000

export async function cutEvents({ revision, events, cuts, folder }: EventCuts): Promise<EventCutsReport> {
  const store = `sqlite:${join(folder, `events-${revision}.db`)}`
  await using server = createServer({ name: 'cut', version: '1.0.0', store, log: 'silent', events: { keep: 2 * events } })
  const counted = server.event('counted', {})
  const proxy = await cuttingProxy((await server.listen()).url)
  const mcp = await connect(proxy.url, { revisions: [revision], log: 'silent' })
  try {
    const quiet = new AbortController()
    const reader = mcp.events(['counted'], { signal: quiet.signal })
    await reader.ready
    const emitting = emitAll(n => counted.emit({ n }), events, cuts, proxy.cut)
    const numbers: number[] = []
    let truncated = 0
    let timer = setTimeout(() => quiet.abort(), waitMs)
    for await (const event of reader) {
      clearTimeout(timer)
      timer = setTimeout(() => quiet.abort(), waitMs)
      numbers.push(event.payload['n'] as number)
      if (event.truncated) truncated++
      if (event.payload['n'] === events - 1) break
    }
    clearTimeout(timer)
    await emitting
    return { ...judged(numbers, events), truncated }
  } finally {
    await mcp.close()
    await proxy.close()
  }
}

async function emitAll(emit: (n: number) => Promise<string>, events: number, cuts: number, cut: () => void): Promise<void> {
  const every = Math.max(1, Math.floor(events / cuts))
  for (let n = 0; n < events; n += 50) {
    await Promise.all(Array.from({ length: Math.min(50, events - n) }, (_, at) => emit(n + at)))
    if (Math.floor(n / every) !== Math.floor((n + 50) / every)) cut()
  }
}

function judged(numbers: readonly number[], events: number): Omit<EventCutsReport, 'truncated'> {
  const different = new Set(numbers).size
  const disordered = numbers.filter((n, at) => at > 0 && n < (numbers[at - 1] as number)).length
  return { heard: numbers.length, missing: events - different, doubled: numbers.length - different, disordered }
}
