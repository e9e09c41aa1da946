/** C, second half: answers, cancels and progress that are aimed at somebody else's call. */
import type { Verdict } from '../case.ts'
import { type Arena, type Attack, badly, describe, judge, textOf, well } from './attack.ts'
import { withPeer } from './data.ts'
import type { Peer, Pending } from './peer.ts'
import { call, type Era, type Frame, isHttp, isModern, lasts } from './wire.ts'

const asks = (era: Era): boolean => era.revision === '2025-11-25' && lasts(era)
const answered = (id: unknown) => (frames: readonly Frame[]) =>
  frames.some(frame => frame['id'] === id && frame['method'] === undefined)

/** The text that came under an id. */
function textUnder(pending: Pending, id: unknown): string | undefined {
  return textOf(
    pending.frames().find(frame => frame['id'] === id && frame['method'] === undefined)?.['result'] as Frame | undefined,
  )
}

async function running(arena: Arena, count: number): Promise<boolean> {
  for (let tries = 0; tries < 500; tries++) {
    if ((await arena.target.facts()).waiting >= count) return true
    await new Promise(done => setTimeout(done, 5))
  }
  return false
}

/** A call of another client under id 1 is under way while the attack happens; it must come to its own end. */
async function besides(arena: Arena, attack: (attacker: Peer) => Promise<string>): Promise<Verdict> {
  const victim = await arena.peer()
  const attacker = await arena.peer()
  try {
    const cancelled = (await arena.target.facts()).cancelled
    const pending = victim.begin(call(arena.era, 'wait', { ms: 400, text: 'mine' }, 1, { _meta: { progressToken: 1 } }))
    if (!(await running(arena, 1))) return badly('the call did not begin')
    const detail = await attack(attacker)
    await pending.until(answered(1))
    const { cancelled: after } = await arena.target.facts()
    return judge(textUnder(pending, 1) === 'mine' && after === cancelled, `${detail}, the call went on`)
  } finally {
    victim.close()
    attacker.close()
  }
}

const cancel = (requestId: unknown): Frame => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId, reason: 'evil' },
})

export const aimAttacks: readonly Attack[] = [
  {
    key: 'C13',
    name: 'an answer under "1", "0x1" or 1.0 text to the question 1: not taken for it',
    fits: asks,
    run: arena =>
      withPeer(arena, async peer => {
        const pending = peer.begin(call(arena.era, 'sure', {}, 'ask'))
        const asked = (frames: readonly Frame[]) => frames.some(frame => frame['method'] === 'elicitation/create')
        if (!(await pending.until(asked))) return badly('nothing was asked')
        const id = pending.frames().find(frame => frame['method'] === 'elicitation/create')?.['id']
        const yes = { action: 'accept', content: { confirm: true, confirmed: true, ok: true } }
        for (const other of [`${id}`, `0x${Number(id).toString(16)}`, `${id}.0`, [id], null, Number(id) + 1])
          await peer.say({ jsonrpc: '2.0', id: other, result: yes })
        if (answered('ask')(pending.frames())) return badly('a wrong id settled it')
        await peer.say({ jsonrpc: '2.0', id, result: { action: 'decline' } })
        const done = await pending.until(answered('ask'))
        pending.leave()
        return judge(done, 'only the true id settled it')
      }),
  },
  {
    key: 'C13',
    name: 'answers posted to a server that asks nothing: refused, or passed over',
    fits: era => !asks(era),
    run: arena => withPeer(arena, peer => toNothing(peer, ['1', '0x1', '1.0'])),
  },
  {
    key: 'C15',
    name: 'a cancel of calls that never were: passed over',
    run: arena =>
      withPeer(arena, async peer => {
        for (const id of [77, 'x', '__proto__', null, {}, undefined, 'y'.repeat(10_000)]) {
          const heard = await peer.say(cancel(id))
          if (heard.status >= 500 || (!isHttp(arena.era) && heard.frames.length > 0)) return badly(describe(heard))
        }
        return well('passed over')
      }),
  },
  {
    key: 'C16',
    name: "a cancel under the id of another client's call: that call goes on",
    run: arena => besides(arena, async attacker => describe(await attacker.say(cancel(1)))),
  },
  {
    key: 'C17',
    name: "progress under the token of another client's call: that call goes on",
    run: arena =>
      besides(arena, async attacker => {
        const params = { progressToken: 1, progress: 1e308, total: -1, message: 'evil' }
        return describe(await attacker.say({ jsonrpc: '2.0', method: 'notifications/progress', params }))
      }),
  },
  {
    key: 'C18',
    name: 'a cancel of the handshake, or of a call that has been answered: passed over',
    run: arena =>
      withPeer(arena, async peer => {
        await peer.say(call(arena.era, 'echo', { text: 'a' }, 41), { awaits: 41 })
        for (const id of [0, 41]) {
          const heard = await peer.say(cancel(id))
          if (heard.status >= 500) return badly(describe(heard))
        }
        return well('passed over')
      }),
  },
  {
    key: 'C29',
    name: 'a hundred cancels for every small id from strangers: nobody is hit',
    run: arena =>
      besides(arena, async attacker => {
        for (let id = 0; id < 50; id++) await attacker.say(cancel(id % 2 === 0 ? id : `${id}`))
        return 'passed over'
      }),
  },
]

async function toNothing(peer: Peer, ids: readonly unknown[]): Promise<Verdict> {
  let last = ''
  for (const id of ids) {
    const heard = await peer.say({ jsonrpc: '2.0', id, result: { content: [] } }, {})
    last = describe(heard)
    if (heard.status >= 500 || heard.frames.some(frame => frame['result'] !== undefined)) return badly(last)
  }
  return well(last)
}

export const idAttacks: readonly Attack[] = [
  {
    key: 'C23',
    name: 'one id twice in flight: both are answered, each with its own',
    run: arena =>
      withPeer(arena, async peer => {
        const first = peer.begin(call(arena.era, 'wait', { ms: 300, text: 'first' }, 1))
        await running(arena, 1)
        const second = peer.begin(call(arena.era, 'wait', { ms: 50, text: 'second' }, 1))
        const both = () =>
          (isHttp(arena.era) ? [...first.frames(), ...second.frames()] : first.frames()).filter(frame => frame['id'] === 1)
        await first.until(() => both().length >= 2, 3_000)
        await second.until(() => both().length >= 2, 1_000)
        const texts = both().map(frame => textOf(frame['result'] as Frame))
        const own = !isHttp(arena.era) || (textUnder(first, 1) === 'first' && textUnder(second, 1) === 'second')
        return judge(own && texts.length === 2 && texts.includes('first') && texts.includes('second'), texts.join(' and '))
      }),
  },
  {
    key: 'C24',
    name: 'fifty clients with the same id at the same time: each gets its own',
    run: async arena => {
      const peers = await Promise.all(Array.from({ length: 50 }, () => arena.peer()))
      const pending = peers.map((peer, at) => peer.begin(call(arena.era, 'wait', { ms: 100, text: `of ${at}` }, 1)))
      await Promise.all(pending.map(each => each.until(answered(1), 8_000)))
      const right = pending.filter((each, at) => textUnder(each, 1) === `of ${at}`).length
      for (const peer of peers) peer.close()
      return judge(right === 50, `${right} of 50 right`)
    },
  },
  {
    key: 'C25',
    name: 'answers to questions that were never asked: passed over or refused',
    run: arena => withPeer(arena, peer => toNothing(peer, [1, 'x', 0, -1, isModern(arena.era) ? 2 : '__proto__'])),
  },
]
