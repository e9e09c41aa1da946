/** D, first half: session ids that are guessed, forged, stolen or thrown away. */
import { type Arena, type Attack, badly, judge, well } from './attack.ts'
import { ask, fire, Line } from './raw.ts'
import { call, type Era, headLines, hello, isHttp, mirrored, posted } from './wire.ts'

const seated = (era: Era): boolean => era.sessions
const unseated = (era: Era): boolean => isHttp(era) && !era.sessions

/** A good call in a session of the caller's choice; undefined names none. */
function callIn(arena: Arena, session: string | undefined): Promise<{ status: number; body: string }> {
  const frame = call(arena.era, 'echo', { text: 'a' })
  const lines = headLines(arena.era, session, mirrored(frame))
  return fire(arena.port, posted({ path: '/mcp', lines, body: JSON.stringify(frame) }))
}

async function named(arena: Arena, names: readonly string[], statuses: readonly number[]) {
  const before = (await arena.target.facts()).runs
  for (const name of names) {
    const { status } = await callIn(arena, name)
    if (!statuses.includes(status)) return badly(`${name.slice(0, 30)}: ${status} instead of ${statuses.join(' or ')}`)
  }
  return judge((await arena.target.facts()).runs === before, `${statuses[0]}`)
}

async function mint(arena: Arena, lines: readonly string[] = []): Promise<string> {
  const head = [...headLines(arena.era, undefined, {}), ...lines]
  const answer = await fire(arena.port, posted({ path: '/mcp', lines: head, body: JSON.stringify(hello(arena.era)) }))
  return answer.headers.get('mcp-session-id') ?? ''
}

/** Opens so many sessions on one line, and ends each again. */
async function mintMany(arena: Arena, count: number): Promise<string[]> {
  const body = JSON.stringify(hello(arena.era))
  const open = posted({ path: '/mcp', lines: headLines(arena.era, undefined, {}), body, keepAlive: true })
  const line = await new Line(arena.port).opened()
  const ids: string[] = []
  for (let at = 0; at < count; at++) {
    const id = (await ask(line, open)).headers.get('mcp-session-id') ?? ''
    ids.push(id)
    await ask(line, Buffer.from(`DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMcp-Session-Id: ${id}\r\n\r\n`))
  }
  line.end()
  return ids
}

/** Sends the same GET or DELETE for a session. */
function visit(arena: Arena, method: 'GET' | 'DELETE', session: string | undefined, lines: readonly string[] = []) {
  const all = [`${method} /mcp HTTP/1.1`, 'Host: 127.0.0.1', 'Accept: text/event-stream', 'Connection: close', ...lines]
  if (session !== undefined) all.push(`Mcp-Session-Id: ${session}`)
  return fire(arena.port, `${all.join('\r\n')}\r\n\r\n`, 1_000)
}

const bitsOf = (id: string): number => id.length * Math.log2(new Set(id).size)

export const sessionAttacks: readonly Attack[] = [
  {
    key: 'D01',
    name: 'a session that never was: 404',
    fits: seated,
    run: arena => named(arena, ['x', 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', '1', '0'], [404]),
  },
  {
    key: 'D02',
    name: 'sessions named like members of Object.prototype: 404',
    fits: seated,
    run: arena => named(arena, ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'size', 'get'], [404]),
  },
  {
    key: 'D03',
    name: 'session ids of 8 KiB, in other scripts, with two in one header: 404 or 400',
    fits: seated,
    run: arena =>
      named(
        arena,
        ['x'.repeat(8_000), '\u00e9\u00e8', `${arena.home.session}, other`, ` ${arena.home.session}x `, '%00'],
        [404, 400],
      ),
  },
  {
    key: 'D04',
    name: 'a handshake that brings its own session id (fixation): the server mints another, or refuses',
    fits: seated,
    run: async arena => {
      const mine = 'attacker-chosen-session-id-000000'
      const given = await mint(arena, [`Mcp-Session-Id: ${mine}`])
      const { status } = await callIn(arena, mine)
      return judge(given !== mine && status === 404, given === '' ? 'refused, 404' : 'another was minted, 404')
    },
  },
  {
    key: 'D05',
    name: 'five hundred session ids: all different, 128 bits and more, no common beginning',
    fits: seated,
    run: async arena => {
      const ids = await mintMany(arena, 500)
      const starts = new Set(ids.map(id => id.slice(0, 6)))
      const fewest = Math.min(...ids.map(bitsOf))
      return judge(
        new Set(ids).size === 500 && starts.size >= 499 && fewest >= 100 && (ids[0]?.length ?? 0) >= 22,
        `${ids[0]?.length} characters each`,
      )
    },
  },
  {
    key: 'D06',
    name: 'no session while exactly one is live: 400, not that one',
    fits: seated,
    run: arena =>
      arena.apart({}, async other => {
        const before = (await other.target.facts()).runs
        const { status } = await callIn(other, undefined)
        const get = await visit(other, 'GET', undefined)
        const gone = await visit(other, 'DELETE', undefined)
        const statuses = [status, get.status, gone.status]
        return judge(statuses.every(each => each === 400) && (await other.target.facts()).runs === before, statuses.join(', '))
      }),
  },
  {
    key: 'D07',
    name: 'a session that was ended: 404 for everything, also for a second end',
    fits: seated,
    run: async arena => {
      const id = await mint(arena)
      const first = await visit(arena, 'DELETE', id)
      const after = [
        (await callIn(arena, id)).status,
        (await visit(arena, 'GET', id)).status,
        (await visit(arena, 'DELETE', id)).status,
      ]
      return judge(first.status < 300 && after.every(status => status === 404), after.join(', '))
    },
  },
  {
    key: 'D08',
    name: 'Last-Event-ID of another session, or of none: nothing is replayed',
    fits: seated,
    run: async arena => {
      const [mine, yours] = [await mint(arena), await mint(arena)]
      const stream = await visit(arena, 'GET', yours)
      const seen = /id: ?(\S+)/.exec(stream.body)?.[1] ?? '1-0'
      for (const last of [seen, '__proto__', '0', '-', '999999999-1', 'x'.repeat(4_000)]) {
        const answer = await visit(arena, 'GET', mine, [`Last-Event-ID: ${last}`])
        if (answer.status >= 500 || /"method"|"result"/.test(answer.body)) return badly(`${last.slice(0, 20)}: ${answer.status}`)
      }
      return well('nothing replayed')
    },
  },
  {
    key: 'D02',
    name: 'session ids where there are no sessions, names of Object.prototype among them: no 5xx',
    fits: unseated,
    run: async arena => {
      for (const name of ['constructor', '__proto__', 'x'.repeat(8_000)]) {
        const { status } = await callIn(arena, name)
        if (status >= 500 || status === 0) return badly(`${name.slice(0, 20)}: ${status}`)
      }
      return well('no harm')
    },
  },
]
