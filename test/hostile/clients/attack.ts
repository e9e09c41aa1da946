/** One attack, the arena in which it happens, and what is looked at after every one: does the server still serve, and how long did it stall? */
import { randomUUID } from 'node:crypto'
import type { Verdict } from '../case.ts'
import { connectPeer, type Heard, type Peer } from './peer.ts'
import { startTarget, type Target } from './target.ts'
import type { TargetSettings } from './target-process.ts'
import { call, type Era, type Frame } from './wire.ts'

export interface Arena {
  readonly era: Era
  readonly target: Target
  readonly port: number
  /** A client of this wire, its handshake made. */
  peer(): Promise<Peer>
  /** Where messages are posted, and the session to name; kept by a client that does no harm. */
  readonly home: { readonly path: string; readonly session: string | undefined }
  /** Another server of the same kind, for what would leave marks on this one. */
  apart<T>(settings: Partial<TargetSettings>, work: (arena: Arena) => Promise<T>): Promise<T>
}

export interface Attack {
  readonly key: string
  readonly name: string
  /** Where it makes sense. Default: everywhere. */
  readonly fits?: (era: Era) => boolean
  /** It mostly waits, so it may go on beside others. */
  readonly patient?: true
  /** It takes seconds or makes the machine sweat: not part of `npm test`. */
  readonly heavy?: true
  /** Mebibytes by which the server may grow meanwhile. */
  readonly memory?: number
  run(arena: Arena): Promise<Verdict>
}

export const well = (detail: string): Verdict => ({ well: true, detail })
export const badly = (detail: string): Verdict => ({ well: false, detail })
export const judge = (holds: boolean, detail: string): Verdict => ({ well: holds, detail })

/** The first of several verdicts that is bad, else what the first one says. */
export function all(verdicts: readonly Verdict[]): Verdict {
  return verdicts.find(verdict => !verdict.well) ?? verdicts[0] ?? badly('nothing was tried')
}

/** The most that an answer to a bad request may hold: it repeats no more than a clip of it. */
const mostBytes = 2_048

export function errorCode(heard: Heard): number | undefined {
  const error = heard.frames.find(frame => frame['error'] !== undefined)?.['error'] as { code?: number } | undefined
  return error?.code
}

export function describe(heard: Heard): string {
  const code = errorCode(heard)
  const parts = [heard.status === 0 ? '' : `${heard.status}`, code === undefined ? '' : `${code}`.replace('-', '−')]
  const said = parts.filter(part => part !== '').join(' ')
  if (said !== '') return said
  return heard.frames.length > 0 ? 'answered' : heard.closed ? 'closed' : 'silence'
}

export interface Refused {
  readonly codes?: readonly number[]
  readonly statuses?: readonly number[]
}

/** Refused in words of the protocol, briefly, and with no 5xx. */
export function refused(heard: Heard, { codes, statuses }: Refused = {}): Verdict {
  const code = errorCode(heard)
  const said = describe(heard)
  if (heard.status >= 500) return badly(`${said}, a mistake of the client is no 5xx`)
  if (statuses !== undefined && heard.status !== 0 && heard.status !== 202 && !statuses.includes(heard.status))
    return badly(`${said} instead of ${statuses.join(' or ')}`)
  if (code === undefined) return badly(`${said}, but no error: ${heard.text.slice(0, 120)}`)
  if (codes !== undefined && !codes.includes(code)) return badly(`${said} instead of ${codes.join(' or ')}`)
  if (heard.text.length > mostBytes) return badly(`${said}, but with ${heard.text.length} bytes`)
  return well(said)
}

/** The result that came under this id. */
export function resultOf(heard: Heard, id: string | number = 1): Frame | undefined {
  return heard.frames.find(frame => frame['id'] === id && frame['method'] === undefined)?.['result'] as Frame | undefined
}

export function textOf(result: Frame | undefined): string | undefined {
  const [first] = (result?.['content'] ?? []) as readonly { text?: string }[]
  return first?.text
}

/** Whether a client that does no harm is served: on a line of its own, with an answer that is its own. */
export async function probe(peer: Peer, era: Era): Promise<Verdict> {
  const nonce = randomUUID()
  const heard = await peer.say(call(era, 'health', { text: nonce }, nonce), { awaits: nonce, ms: 10_000 })
  return judge(textOf(resultOf(heard, nonce)) === nonce, `a good client got ${describe(heard)}`)
}

export async function openArena(
  era: Era,
  settings: Partial<TargetSettings> = {},
): Promise<{ arena: Arena; healthy: () => Promise<Verdict>; close: () => Promise<void> }> {
  const target = await startTarget({ carrier: 'http', sessions: era.sessions || era.carrier !== 'http', ...settings })
  const good = await connectPeer(target.port, era)
  const arena: Arena = {
    era,
    target,
    port: target.port,
    peer: () => connectPeer(target.port, era),
    home: { path: 'address' in good ? String(good.address) : '/mcp', session: good.session },
    apart: async (more, work) => {
      const other = await openArena(era, { ...settings, ...more })
      try {
        return await work(other.arena)
      } finally {
        await other.close()
      }
    },
  }
  return {
    arena,
    healthy: () => probe(good, era),
    close: async () => {
      good.close()
      await target.stop()
    },
  }
}
