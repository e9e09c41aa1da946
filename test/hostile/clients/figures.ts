/** F: the figures that are promised, at their full size. */
import { randomUUID } from 'node:crypto'
import type { HostileCase, HostileSuite, Verdict } from '../case.ts'
import { type Arena, judge, openArena, textOf } from './attack.ts'
import { connectPeer, framesOf, type Peer } from './peer.ts'
import { ask, fire, Line, parseAnswer } from './raw.ts'
import { abandons, neverReads } from './streams.ts'
import { call, type Era, eras, type Frame, headLines, mirrored, posted } from './wire.ts'

/** Everybody uses id 1, and each answer must hold the caller's own nonce. */
async function crossTalk(era: Era): Promise<Verdict> {
  const { arena, close } = await openArena(era, { unrated: true })
  let right = 0
  let foreign = 0
  let lost = 0
  const client = async (): Promise<void> => {
    const { session } = await connectPeer(arena.port, era)
    const line = await new Line(arena.port).opened()
    for (let at = 0; at < 50; at++) {
      const nonce = randomUUID()
      const frame = call(era, 'wait', { ms: at % 5, text: nonce }, 1)
      const lines = headLines(era, session, mirrored(frame))
      const answer = await ask(line, posted({ path: '/mcp', lines, body: JSON.stringify(frame), keepAlive: true }))
      const frames = framesOf(answer.body, answer.headers.get('content-type'))
      const texts = frames.map(each => textOf(each['result'] as Frame | undefined))
      if (texts.includes(nonce)) right++
      else if (texts.some(text => text !== undefined)) foreign++
      else lost++
    }
    line.end()
  }
  await Promise.all(Array.from({ length: 200 }, client))
  await close()
  return judge(right === 10_000, `${right.toLocaleString('en')} right answers, ${foreign} foreign, ${lost} lost`)
}

async function withArena(era: Era, work: (arena: Arena) => Promise<Verdict>): Promise<Verdict> {
  const { arena, close } = await openArena(era)
  try {
    return await work(arena)
  } finally {
    await close()
  }
}

/** Half of them are slow with their heads, half with their bodies; a good client asks all the while. */
async function slowSenders(arena: Arena): Promise<Verdict> {
  const frame = call(arena.era, 'echo', { text: 'a' })
  const slowBody = posted({
    path: '/mcp',
    lines: headLines(arena.era, arena.home.session, mirrored(frame)),
    body: '{',
    length: 'Content-Length: 5000',
  })
  const lines = await Promise.all(Array.from({ length: 500 }, () => new Line(arena.port).opened()))
  const started = performance.now()
  for (const [at, line] of lines.entries()) line.write(at % 2 === 0 ? slowBody : 'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n')
  const drip = setInterval(() => {
    for (const [at, line] of lines.entries()) line.write(at % 2 === 0 ? ' ' : 'X-a: b\r\n')
  }, 1_000)
  let over = false
  const served = serveMeanwhile(await arena.peer(), arena.era, () => over)
  const cut = await Promise.all(lines.map(line => line.ended(20_000)))
  const seconds = (performance.now() - started) / 1000
  over = true
  clearInterval(drip)
  for (const line of lines) line.end()
  const { calls, failed, p99 } = await served
  const gone = cut.filter(Boolean).length
  const detail = `${gone} of 500 cut in ${seconds.toFixed(1)} s; ${calls} calls of others, ${failed} failed, p99 ${p99.toFixed(0)} ms`
  return judge(gone === 500 && seconds <= 20 && failed === 0, detail)
}

async function serveMeanwhile(
  peer: Peer,
  era: Era,
  over: () => boolean,
): Promise<{ calls: number; failed: number; p99: number }> {
  const times: number[] = []
  let failed = 0
  while (!over()) {
    const began = performance.now()
    const heard = await peer.say(call(era, 'health', { text: 'x' }), { awaits: 1 })
    times.push(performance.now() - began)
    if (textOf(heard.frames[0]?.['result'] as Frame | undefined) !== 'x') failed++
    await new Promise(done => setTimeout(done, 20))
  }
  times.sort((a, b) => a - b)
  return { calls: times.length, failed, p99: times[Math.floor(times.length * 0.99)] ?? 0 }
}

/** Five times what may run at once: as many are served as may run, the rest is told to wait, and nothing that runs is dropped. */
async function overload(): Promise<Verdict> {
  const room = 100
  const { arena, close } = await openArena(eras.modern, { limits: { calls: room }, unrated: true })
  const frame = call(arena.era, 'wait', { ms: 1_500, text: 'kept' })
  const data = posted({ path: '/mcp', lines: headLines(arena.era, undefined, mirrored(frame)), body: JSON.stringify(frame) })
  const times: number[] = []
  const answers = await Promise.all(
    Array.from({ length: 5 * room }, async () => {
      const line = await new Line(arena.port).opened()
      const began = performance.now()
      line.write(data)
      await line.ended(15_000)
      const answer = parseAnswer(line.text)
      if (answer.status === 503) times.push(performance.now() - began)
      return answer
    }),
  )
  const kept = answers.filter(({ status, body, headers }) => {
    const [first] = framesOf(body, headers.get('content-type'))
    return status === 200 && textOf(first?.['result'] as Frame | undefined) === 'kept'
  }).length
  const refused = answers.filter(({ status, headers }) => status === 503 && headers.has('retry-after')).length
  const after = await fire(arena.port, data)
  await close()
  times.sort((a, b) => a - b)
  const p50 = times[Math.floor(times.length / 2)] ?? 0
  const detail = `${kept} running calls kept, ${refused} refused with 503 and Retry-After (half of them within ${p50.toFixed(0)} ms), then ${after.status}`
  return judge(kept === room && refused === 4 * room && after.status === 200, detail)
}

const cases: readonly HostileCase[] = [
  {
    key: 'F01',
    name: '200 clients with 50 calls each, all under id 1 (2025-11-25)',
    run: () => crossTalk(eras.sessions),
  },
  {
    key: 'F02',
    name: '200 clients with 50 calls each, all under id 1 (2026-07-28)',
    run: () => crossTalk(eras.modern),
  },
  {
    key: 'F03',
    name: '10,000 abandoned sessions: at most 40 MiB, and gone after their time',
    patient: true,
    run: () => withArena(eras.sessions, arena => abandons(arena, 10_000, 5_000)),
  },
  {
    key: 'F04',
    name: 'a reader that never reads: at most 8 MiB, and cut',
    patient: true,
    run: () => withArena(eras.modern, arena => neverReads(arena, 25_000)),
  },
  {
    key: 'F05',
    name: '500 slow senders: all cut within 20 s while others are served',
    run: () => withArena(eras.sessions, slowSenders),
  },
  {
    key: 'F06',
    name: 'five times as many calls as may run: the rest 503, those that run are kept',
    run: overload,
  },
]

export const figures: HostileSuite = {
  title: 'figures',
  open: () => Promise.resolve({ cases, close: () => Promise.resolve() }),
}
