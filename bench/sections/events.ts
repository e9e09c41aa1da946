/**
 * What an event costs: emitted in this process, and delivered over HTTP to so many listen requests, whose readers are in this
 * process too and only count. As many as the window are under way at a time, so that nobody falls behind.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Options } from '../options.ts'
import { type EventRow, failure } from '../results.ts'
import { median } from '../stats.ts'

const WINDOW = 64
const shapes = [
  ['memory', 1],
  ['memory', 100],
  ['memory', 1_000],
  ['sqlite', 1],
  ['sqlite', 100],
] as const

interface Round {
  emitsPerSecond: number
  deliveriesPerCpuSecond: number
  p99Ms: number
}

export async function measureEvents(options: Options, row: (row: EventRow) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-bench-'))
  try {
    for (const [store, subscribers] of shapes) {
      const url = store === 'memory' ? 'memory:' : `sqlite:${join(folder, `events-${subscribers}.db`)}`
      row({ store, subscribers, cells: { events: await measured(options, url, subscribers).catch(failure) } })
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measured({ timing }: Options, url: string, subscribers: number): Promise<Round> {
  const bench = await open(url, subscribers)
  try {
    await bench.round(timing.roundMs)
    const all: Round[] = []
    for (let at = 0; at < timing.rounds; at++) all.push(await bench.round(timing.roundMs))
    const of = (figure: keyof Round): number => median(all.map(round => round[figure]))
    return { emitsPerSecond: of('emitsPerSecond'), deliveriesPerCpuSecond: of('deliveriesPerCpuSecond'), p99Ms: of('p99Ms') }
  } finally {
    await bench.close()
  }
}

async function open(store: string, subscribers: number) {
  const { createServer } = await import('vivarium/server')
  const server = createServer({ name: 'bench', version: '1.0.0', store, limits: { rates: false } })
  const happened = server.event('happened', { payload: { type: 'object' } })
  const { url } = await server.listen()
  const readers = await Promise.all(Array.from({ length: subscribers }, (_, at) => listen(url, at === 0)))
  let emitted = 0
  const arrived = async (): Promise<void> => {
    while (readers.some(({ heard }) => heard() < emitted)) await new Promise(resolve => setImmediate(resolve))
  }
  return {
    round: async (ms: number): Promise<Round> => {
      const cpu = process.cpuUsage()
      const began = performance.now()
      const before = emitted
      readers[0]?.latencies.splice(0)
      while (performance.now() - began < ms) {
        emitted += WINDOW
        await Promise.all(Array.from({ length: WINDOW }, () => happened.emit({ title: 'A ticket', at: performance.now() })))
        await arrived()
      }
      const { user, system } = process.cpuUsage(cpu)
      const count = emitted - before
      const sorted = (readers[0]?.latencies ?? []).sort((a, b) => a - b)
      return {
        emitsPerSecond: (count / (performance.now() - began)) * 1000,
        deliveriesPerCpuSecond: (count * subscribers) / ((user + system) / 1e6),
        p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
      }
    },
    close: async () => {
      for (const { end } of readers) end()
      await server.close()
    },
  }
}

/** A reader that counts events; `times`: and how long each took. */
function listen(url: string, times: boolean) {
  const params = {
    notifications: { 'dev.vivarium/events': [{ events: ['happened'] }] },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': { extensions: { 'dev.vivarium/events': {} } },
    },
  }
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'subscriptions/listen',
  }
  return new Promise<{ heard(): number; readonly latencies: number[]; end(): void }>((resolve, reject) => {
    const request = http.request(url, { method: 'POST', headers, agent: false }, response => {
      // The acknowledgement is the first.
      let heard = -1
      let last = ''
      const latencies: number[] = []
      response.setEncoding('latin1').on('error', () => {})
      response.on('data', (chunk: string) => {
        const text = last + chunk
        for (let at = text.indexOf('\n\n'); at >= 0; at = text.indexOf('\n\n', at + 2)) heard++
        last = text.endsWith('\n\n') ? '' : text.slice(-1)
        if (times) for (const [, at] of chunk.matchAll(/"at":([\d.]+)/g)) latencies.push(performance.now() - Number(at))
        if (heard >= 0) resolve({ heard: () => heard, latencies, end: () => request.destroy() })
      })
    })
    request.on('error', reject)
    request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params }))
  })
}
