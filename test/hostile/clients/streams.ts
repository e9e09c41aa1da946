/** D, second half: readers that do not read, sessions and streams by the thousand, handlers that fail. */
import type { Verdict } from '../case.ts'
import { type Arena, type Attack, badly, describe, judge, well } from './attack.ts'
import { withPeer } from './data.ts'
import { connectPeer, upgradeText } from './peer.ts'
import { fire, Line } from './raw.ts'
import { growth, mebibyte, mebibytes } from './watch.ts'
import { call, type Era, type Frame, headLines, hello, isHttp, isModern, mirrored, posted, request } from './wire.ts'
import { opcodes, wsFrame } from './ws-frames.ts'

/** A call that says 80 MiB before it ends, to a caller that reads nothing. */
const flood = (era: Era): Frame => {
  const logs = isModern(era) ? { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } } : {}
  return call(era, 'flood', { pieces: 1_280, bytes: 65_536, kind: 'log' }, 1, logs)
}

async function deafLine(arena: Arena): Promise<Line> {
  const { era, port, home } = arena
  const line = await new Line(port).opened()
  if (era.carrier === 'websocket') {
    line.write(upgradeText())
    await line.until(text => text.includes('\r\n\r\n'))
    line.write(wsFrame(opcodes.text, JSON.stringify(hello(era))))
    await line.until(text => text.includes('protocolVersion'))
    line.socket.pause()
    line.write(wsFrame(opcodes.text, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })))
    line.write(wsFrame(opcodes.text, JSON.stringify(flood(era))))
    return line
  }
  line.socket.pause()
  const frame = flood(era)
  line.write(posted({ path: home.path, lines: headLines(era, home.session, mirrored(frame)), body: JSON.stringify(frame) }))
  return line
}

/** The pair answers on the stream that a GET opened: it is that one which is not read. */
async function deafPair(arena: Arena): Promise<Line> {
  const line = await new Line(arena.port).opened()
  line.write('GET /sse HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n')
  await line.until(text => /data: \S+\n\n/.test(text))
  line.socket.pause()
  const path = /data: (\S+)/.exec(line.text)?.[1] ?? ''
  for (const frame of [hello(arena.era), { jsonrpc: '2.0', method: 'notifications/initialized' }, flood(arena.era)]) {
    await fire(arena.port, posted({ path, lines: headLines(arena.era, undefined, {}), body: JSON.stringify(frame) }))
  }
  return line
}

/** Waits until the server has let go of the line; what the kernel holds does not count as reading. */
async function whenCut(line: Line, ms: number, sign: string | Buffer = '\r\n'): Promise<boolean> {
  const end = performance.now() + ms
  while (performance.now() < end) {
    if (line.socket.destroyed || line.socket.readyState === 'closed') return true
    // Without reading, only a write shows that the other end has closed.
    line.socket.write(sign)
    await new Promise(done => setTimeout(done, 250))
  }
  return false
}

/** The same flood, read to its end: what it costs without an attack is no part of what the attack costs. */
async function readOnce(arena: Arena): Promise<void> {
  const peer = await arena.peer()
  await peer.say(flood(arena.era), { awaits: 1, ms: 20_000 })
  peer.close()
}

export async function neverReads(arena: Arena, cutMs: number): Promise<Verdict> {
  return arena.apart({ unrated: true }, async other => {
    await readOnce(other)
    const { used: before } = await other.target.facts(true)
    let held = before
    const { result, grown } = await growth(other.target, async () => {
      const line = other.era.carrier === 'sse' ? await deafPair(other) : await deafLine(other)
      let over = false
      const look = async (): Promise<void> => {
        if (over) return
        held = Math.max(held, (await other.target.facts(true)).used)
        setTimeout(tryLook, 200)
      }
      const tryLook = (): void => void look().catch(() => {})
      tryLook()
      const started = performance.now()
      const cut = await whenCut(line, cutMs, other.era.carrier === 'websocket' ? wsFrame(opcodes.ping) : '\r\n')
      over = true
      line.end()
      return { cut, seconds: (performance.now() - started) / 1000 }
    })
    const cost = held - before
    const detail = `+${mebibytes(cost)} for 80 MiB (resident +${mebibytes(grown.peak)}), ${result.cut ? `cut after ${result.seconds.toFixed(1)} s` : 'not cut'}`
    return judge(result.cut && cost <= 8 * mebibyte, detail)
  })
}

/** Opens sessions, one after another on 16 lines; gives how many there were, and the last one's id. */
async function openSessions(arena: Arena, count: number, leave: boolean): Promise<{ opened: number; id: string }> {
  const { era, port } = arena
  const open = posted({ path: '/mcp', lines: headLines(era, undefined, {}), body: JSON.stringify(hello(era)), keepAlive: true })
  let id = ''
  let opened = 0
  const one = async (): Promise<void> => {
    const line = await new Line(port).opened()
    for (let at = 0; at < count / 16; at++) {
      line.text = ''
      line.write(open)
      if (!(await line.until(text => text.includes('"protocolVersion"')))) break
      if (line.text.startsWith('HTTP/1.1 200')) opened++
      id = /mcp-session-id: (\S+)/i.exec(line.text)?.[1] ?? id
      if (!leave) continue
      line.text = ''
      line.write(`DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: ${id}\r\n\r\n`)
      await line.until(text => text.includes('\r\n\r\n'))
    }
    line.end()
  }
  await Promise.all(Array.from({ length: 16 }, one))
  return { opened, id }
}

/** Opens sessions and leaves them; the table is watched until they are gone. */
export async function abandons(arena: Arena, count: number, idleMs: number): Promise<Verdict> {
  return arena.apart({ limits: { sessionIdleMs: idleMs, sessions: count + 100 } }, async other => {
    // As many that are ended in good order: what a busy server needs anyway is no part of the cost.
    await openSessions(other, count, true)
    const before = (await other.target.facts(true, true)).used
    const resident = other.target.resident()
    const result = await openSessions(other, count, false)
    const used = (await other.target.facts(true, true)).used - before
    const kept = other.target.resident() - resident
    const gone = await expired(other, result.id, idleMs + 10_000)
    const detail = `${result.opened} sessions, +${mebibytes(kept)} (${mebibytes(used)} in use), ${gone ? 'gone after their time' : 'still there'}`
    return judge(result.opened >= count && gone && kept <= 40 * mebibyte, detail)
  })
}

async function expired(arena: Arena, session: string, ms: number): Promise<boolean> {
  // Asking for a session is using it: so it is asked only once its time is over.
  await new Promise(done => setTimeout(done, ms - 5_000))
  const lines = headLines(arena.era, session, {})
  const body = JSON.stringify(request(arena.era, 'ping'))
  const { status } = await fire(arena.port, posted({ path: '/mcp', lines, body }))
  return status === 404
}

/** Streams without end until the cap says no; others still get their answers. */
async function hoards(arena: Arena): Promise<Verdict> {
  return arena.apart({ http: { streams: 200 }, limits: { listeners: 200 } }, async other => {
    const { era, port } = other
    const lines: Line[] = []
    const frame = request(era, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    for (let at = 0; at < 260; at++) {
      const line = new Line(port)
      lines.push(line)
      if (isModern(era))
        line.write(posted({ path: '/mcp', lines: headLines(era, undefined, mirrored(frame)), body: JSON.stringify(frame) }))
      else if (era.carrier === 'sse') line.write('GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n')
      else {
        const session = (await connectPeer(port, era)).session
        line.write(`GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: ${session}\r\n\r\n`)
      }
    }
    await Promise.all(lines.map(line => line.until(text => text.includes('\r\n\r\n'))))
    const refusals = lines.filter(line => /^HTTP\/1\.1 503 /.test(line.text))
    const waits = refusals.every(line => /retry-after: \d/i.test(line.text))
    for (const line of lines) line.end()
    return judge(
      refusals.length >= 60 && waits,
      `${lines.length - refusals.length} streams, then 503${waits ? ' with Retry-After' : ''}`,
    )
  })
}

const failing = [
  'throws',
  'rejects',
  'throws-null',
  'throws-text',
  'throws-getter',
  'returns-cycle',
  'returns-bigint',
  'rejects-later',
]

export const streamAttacks: readonly Attack[] = [
  {
    key: 'D09',
    name: 'a reader that never reads 80 MiB: at most 8 MiB wait for it, and it is cut',
    fits: era => era.carrier !== 'stdio',
    patient: true,
    heavy: true,
    run: arena => neverReads(arena, 25_000),
  },
  {
    key: 'D10',
    name: 'ten thousand sessions that nobody uses: at most 40 MiB, and gone after their time',
    fits: era => era.sessions,
    patient: true,
    heavy: true,
    run: arena => abandons(arena, 10_000, 5_000),
  },
  {
    key: 'D11',
    name: 'streams by the hundred: 503 with Retry-After beyond the cap',
    fits: era => isModern(era) || era.sessions || era.carrier === 'sse',
    heavy: true,
    run: hoards,
  },
  {
    key: 'D12',
    name: 'handlers that throw, reject, return what JSON cannot hold: an error, and the process lives',
    run: arena =>
      withPeer(arena, async peer => {
        for (const name of failing) {
          const heard = await peer.say(call(arena.era, `fail-${name}`), { awaits: 1 })
          const { frames } = heard
          if (frames.length === 0) return badly(`${name}: ${describe(heard)}`)
          if (/\\n\s+at |node:internal|\.js:\d/.test(heard.text))
            return badly(`${name} tells its insides: ${heard.text.slice(0, 200)}`)
        }
        return well('eight failures told')
      }),
  },
]

/** Kinds of line that the pipelined flood below goes to. */
export const pipelined: Attack = {
  key: 'D09',
  name: 'thousands of requests in one go whose answers nobody reads: bounded, and cut',
  fits: isHttp,
  patient: true,
  heavy: true,
  run: arena =>
    arena.apart({ unrated: true }, async other => {
      const frame = call(other.era, 'big', { bytes: 262_144 })
      const one = posted({
        path: '/mcp',
        lines: headLines(other.era, other.home.session, mirrored(frame)),
        body: JSON.stringify(frame),
        keepAlive: true,
      })
      const { result: cut, grown } = await growth(other.target, async () => {
        const line = await new Line(other.port).opened()
        line.socket.pause()
        line.write(Buffer.concat(Array.from({ length: 400 }, () => one)))
        const done = await whenCut(line, 25_000)
        line.end()
        return done
      })
      return judge(cut && grown.peak <= 32 * mebibyte, `+${mebibytes(grown.peak)} for 100 MiB, ${cut ? 'cut' : 'not cut'}`)
    }),
}
