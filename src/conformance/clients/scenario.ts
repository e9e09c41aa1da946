/** A scenario for a client or a host: what a play must have shown. */
import type { Carrier } from '../../jsonrpc/connection.ts'
import type { RevisionId } from '../../revisions/index.ts'
import { Failed, type Frame, type Role, Skipped } from '../scenario.ts'
import type { Play } from './play.ts'
import type { Seen } from './seen.ts'
import type { Said } from './stage/book.ts'

export interface ClientScenario {
  readonly id: string
  /** Statements: `E11-3`, `L9.4-1`, or a clause: `MCP basic/transports`. */
  readonly proves: readonly string[]
  readonly role: Role
  readonly title: string
  readonly revisions: readonly RevisionId[]
  /** Absent: all that the revision has. */
  readonly carriers?: readonly Carrier[]
  readonly play: Play
  /** Why this client cannot be judged by it, as it declares itself; undefined: it can. */
  readonly needs?: (seen: Seen) => string | undefined
  readonly check: (seen: Seen, verdict: Verdict) => void
}

/** How a scenario says what is wrong. All can be taken out of it. */
export interface Verdict {
  expect(condition: boolean, says: string, evidence?: readonly (Said | undefined)[]): void
  fail(says: string, evidence?: readonly (Said | undefined)[]): never
  /** A SHOULD that is not kept. */
  warn(says: string): void
  skip(why: string): never
}

export function verdict(remarks: string[]): Verdict {
  const fail = (says: string, evidence: readonly (Said | undefined)[] = []): never => {
    throw new Failed(says, evidence.filter(said => said !== undefined).map(frameOf))
  }
  return {
    expect(condition, says, evidence) {
      if (!condition) fail(says, evidence)
    },
    fail,
    warn: says => void remarks.push(says),
    skip(why) {
      throw new Skipped(why)
    },
  }
}

/** As the report shows it. */
export function frameOf({ from, at, text, frame }: Said): Frame {
  return { way: from === 'client' ? 'in' : 'out', at: Math.round(at), text, value: frame }
}

export const OLDEST: RevisionId = '2024-11-05'
export const SESSIONS: readonly RevisionId[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
export const STATELESS: readonly RevisionId[] = ['2026-07-28', 'draft-2026-v1']
export const OFFICIAL: readonly RevisionId[] = [...SESSIONS, '2026-07-28']
export const EVERY: readonly RevisionId[] = [...SESSIONS, ...STATELESS]
export const ALL: readonly RevisionId[] = [...EVERY, 's3']
export const HTTP_SESSIONS: readonly RevisionId[] = ['2025-03-26', '2025-06-18', '2025-11-25']
/** Both eras, each at its newest. */
export const ERAS: readonly RevisionId[] = ['2025-11-25', '2026-07-28']

/** A client scenario in few words. */
export function scenario(
  id: string,
  title: string,
  play: Play,
  rules: Pick<ClientScenario, 'proves' | 'revisions' | 'check'> & Partial<Pick<ClientScenario, 'carriers' | 'needs' | 'role'>>,
): ClientScenario {
  return { role: 'client', id, title, play, ...rules }
}

/** Needs what the client must have declared. */
export function declares(path: string): (seen: Seen) => string | undefined {
  return seen => (seen.has(path) ? undefined : `the client does not declare ${path}`)
}

/** Needs that the client says what came of its steps. */
export function reports(seen: Seen): string | undefined {
  return seen.reported.size > 0 ? undefined : 'the client does not report what came of its steps'
}
