/** A: bodies and heads that are too long or too slow, and callers that leave in the middle. */
import type { Verdict } from '../case.ts'
import { type Arena, type Attack, badly, judge, well } from './attack.ts'
import { echoBody, said, shot, turnedAway } from './edge-shot.ts'
import { fire, Line, parseAnswer } from './raw.ts'
import { isHttp } from './wire.ts'

const mebibyte = 1024 * 1024

/** Pushes as much as the other end takes, up to 64 MiB, and tells how much that was. */
async function pour(arena: Arena, head: Buffer, chunk: Buffer): Promise<Verdict> {
  const line = await new Line(arena.port).opened()
  line.write(head)
  let room = true
  let poured = 0
  line.socket.on('drain', () => {
    room = true
  })
  const end = performance.now() + 6_000
  while (poured < 64 * mebibyte && !line.closed && performance.now() < end) {
    if (room) {
      room = line.write(chunk)
      poured += chunk.length
      await new Promise(done => setImmediate(done))
    } else await new Promise(done => setTimeout(done, 2))
  }
  await line.ended(3_000)
  const { status } = parseAnswer(line.text)
  const taken = (line.socket.bytesWritten / mebibyte).toFixed(0)
  line.end()
  if (status !== 413) return badly(`${status} instead of 413, ${taken} MiB taken`)
  // Ten and more of them the kernels hold at both ends: what matters is that it is far from all.
  return judge(line.socket.bytesWritten <= 32 * mebibyte, `413, ${taken} MiB taken`)
}

/** Sends a piece every so often until the other end has had enough. */
async function trickle(arena: Arena, first: string | Buffer, piece: string, withinMs: number): Promise<Verdict> {
  const line = new Line(arena.port)
  const started = performance.now()
  line.write(first)
  const timer = setInterval(() => line.write(piece), 500)
  const cut = await line.ended(withinMs + 6_000)
  clearInterval(timer)
  line.end()
  const seconds = (performance.now() - started) / 1000
  return judge(
    cut && seconds <= withinMs / 1000,
    cut ? `cut after ${seconds.toFixed(1)} s` : `still open after ${seconds.toFixed(0)} s`,
  )
}

const zeros = Buffer.alloc(64 * 1024, 0x20)
const chunk = Buffer.concat([Buffer.from('10000\r\n'), zeros, Buffer.from('\r\n')])

export const bulkAttacks: readonly Attack[] = [
  {
    key: 'A01',
    name: 'a body of 64 MiB that says so: 413 at once',
    memory: 16,
    run: arena => pour(arena, shot(arena, { body: '', length: `Content-Length: ${64 * mebibyte}` }), zeros),
  },
  {
    key: 'A02',
    name: 'a body of 64 MiB that does not say so: 413 once it is too long',
    memory: 32,
    run: arena => pour(arena, shot(arena, { body: '', length: 'Transfer-Encoding: chunked' }), chunk),
  },
  {
    key: 'A17',
    name: 'Expect: 100-continue before 64 MiB: refused, not invited; another expectation: 417',
    run: async arena => {
      const length = `Content-Length: ${64 * mebibyte}`
      const invited = await fire(arena.port, shot(arena, { body: '', length, lines: ['Expect: 100-continue'] }), 2_000)
      if (invited.status !== 413 && invited.status !== 417) return badly(`${said(invited)} instead of 413`)
      return turnedAway(arena, shot(arena, { lines: ['Expect: a-miracle'] }), [417])
    },
  },
  {
    key: 'A21',
    name: 'a body in drops: cut within 15 s',
    patient: true,
    run: arena => trickle(arena, shot(arena, { body: '{', length: 'Content-Length: 5000' }), ' ', 15_000),
  },
  {
    key: 'A22',
    name: 'a head in drops: cut within 11 s',
    patient: true,
    run: arena => trickle(arena, `POST ${arena.home.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n`, 'X-a: b\r\n', 11_000),
  },
  {
    key: 'A23',
    name: 'a head of 64 KiB: 431',
    run: arena => turnedAway(arena, shot(arena, { lines: [`X-Big: ${'x'.repeat(65_536)}`] }), [431]),
  },
  {
    key: 'A25',
    name: 'ten thousand header lines: 431 or 400',
    run: arena => turnedAway(arena, shot(arena, { lines: Array.from({ length: 10_000 }, (_, at) => `X-${at}: 1`) }), [400, 431]),
  },
]

export const oddAttacks: readonly Attack[] = [
  {
    key: 'A15',
    name: 'paths that nobody serves, dots and encodings included: 404',
    run: async arena => {
      for (const path of ['/', '/mcp/', '/mcp/../mcp', '/%6dcp', '//mcp', '/mcp%00', '/constructor', 'http://evil.example/mcp']) {
        const verdict = await turnedAway(arena, shot(arena, { path }), [400, 404])
        if (!verdict.well) return badly(`${path}: ${verdict.detail}`)
      }
      return well('404')
    },
  },
  {
    key: 'A16',
    name: 'methods that are not served: 405 or 400',
    run: async arena => {
      for (const method of ['PUT', 'PATCH', 'TRACE', 'HEAD', 'FOO', 'post']) {
        const text = shot(arena).toString('latin1').replace(/^POST/, method)
        const verdict = await turnedAway(arena, Buffer.from(text, 'latin1'), [0, 400, 405])
        if (!verdict.well) return badly(`${method}: ${verdict.detail}`)
      }
      return well('405')
    },
  },
  {
    key: 'A18',
    name: 'answers that the caller excludes: 406',
    fits: isHttp,
    run: arena => turnedAway(arena, shot(arena, { without: ['accept'], lines: ['Accept: image/png'] }), [406]),
  },
  {
    key: 'A24',
    name: 'two hundred callers that leave in head, body and answer: nothing happens',
    run: async arena => {
      const whole = shot(arena, { body: echoBody(arena, 'left') })
      const lines = await Promise.all(Array.from({ length: 200 }, () => new Line(arena.port).opened()))
      lines.forEach((line, at) => {
        line.write(whole.subarray(0, at % 4 === 0 ? whole.length : Math.max(1, (at * whole.length) / 200)))
      })
      await new Promise(done => setImmediate(done))
      for (const [at, line] of lines.entries()) at % 2 === 0 ? line.reset() : line.end()
      return well('gone')
    },
  },
]
