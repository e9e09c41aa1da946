/** Short forms for writing scenarios as tables. */
import { isRecord } from '../jsonrpc/message.ts'
import { allRevisions } from './plan.ts'
import type { Advertised, Carrier, Json, RevisionId, Scenario } from './scenario.ts'
import type { Answer } from './wire/raw-peer.ts'

/** Why a scenario cannot be judged on this peer; undefined: it can. */
export type Need = (peer: Advertised) => string | undefined

export interface Definition {
  readonly title: string
  readonly proves: readonly string[]
  readonly revisions: readonly RevisionId[]
  readonly carriers?: readonly Carrier[]
  readonly writes?: boolean
  readonly needs?: readonly Need[]
  readonly run: Scenario['run']
}

/** A scenario for servers. */
export function scenario(id: string, { needs = [], ...definition }: Definition): Scenario {
  return {
    id,
    role: 'server',
    ...definition,
    needs: peer => {
      for (const need of needs) {
        const why = need(peer)
        if (why !== undefined) return why
      }
      return undefined
    },
  }
}

export function capability(path: string): Need {
  return peer => (peer.has(path) ? undefined : `it does not advertise ${path}`)
}

export function extension(id: string): Need {
  return peer => (peer.extension(id) === undefined ? `it does not advertise the extension ${id}` : undefined)
}

/** A fixture of conformance suites. */
export function tool(name: string): Need {
  return peer => (peer.tool(name) === undefined ? `it has no tool ${name}` : undefined)
}

export function prompt(name: string): Need {
  return peer => (peer.prompt(name) === undefined ? `it has no prompt ${name}` : undefined)
}

const ages = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', 'draft-2026-v1', '2026-07-28'] as const

/** All revisions from one on, without the dialect. */
export function since(first: (typeof ages)[number]): readonly RevisionId[] {
  return ages.slice(ages.indexOf(first))
}

/** All revisions up to one, without the dialect. */
export function until(last: (typeof ages)[number]): readonly RevisionId[] {
  return ages.slice(0, ages.indexOf(last) + 1)
}

/** Those with a handshake and sessions. */
export const sessions = until('2025-11-25')
/** Those in which every request stands alone. */
export const stateless: readonly RevisionId[] = ['draft-2026-v1', '2026-07-28']
/** All but the dialect. */
export const official = since('2024-11-05')
export const every = allRevisions

export const duplex: readonly Carrier[] = ['stdio', 'memory', 'websocket']

/** Result of an answer as an object; empty where there is none. */
export function resultIn({ result }: Answer): Json {
  return isRecord(result) ? result : {}
}

/** The code of an answer's error; undefined where there is none. */
export function codeIn({ error }: Answer): unknown {
  return error?.code
}

/** A member that should be an object; empty where it is none. */
export function objectIn(value: unknown, ...path: readonly string[]): Json {
  let at: unknown = value
  for (const member of path) at = isRecord(at) ? at[member] : undefined
  return isRecord(at) ? at : {}
}

/** A member that should be a list; empty where it is none. */
export function listIn(value: unknown, member: string): readonly unknown[] {
  const list = isRecord(value) ? value[member] : undefined
  return Array.isArray(list) ? list : []
}

/** All text of a result's content. */
export function textIn(answer: Answer): string {
  const blocks = listIn(answer.result, 'content').filter(isRecord)
  return blocks.map(block => (typeof block['text'] === 'string' ? block['text'] : '')).join('\n')
}
