/**
 * Who began a turn: the user, or an event that a server pushed. What the turn may do without a question depends on it: a server that
 * can make the model act must not thereby get the rights of another.
 */
import { quoted } from '../../core/why.ts'
import { clip } from '../../jsonrpc/limits.ts'

export type BegunBy =
  | { readonly kind: 'user' }
  | {
      readonly kind: 'event'
      readonly server: string
      readonly featureSet: string
      readonly eventId: string
      /** Other servers whose events led to this one, through turns that they began. */
      readonly through?: readonly string[]
    }

/** Every server that had a part in beginning the turn; none where the user began it. */
export function beginners(begunBy: BegunBy | undefined): readonly string[] {
  if (begunBy?.kind !== 'event') return []
  return [...new Set([begunBy.server, ...(begunBy.through ?? [])])].sort()
}

/** As rules name it: `user`, or `event/SERVER` for every server that had a part in it. Nothing where there is no turn. */
export function begunByNames(begunBy: BegunBy | undefined): readonly string[] {
  if (begunBy === undefined) return []
  return begunBy.kind === 'user' ? ['user'] : beginners(begunBy).map(server => `event/${server}`)
}

/** For sentences; empty where the user began the turn, or there is none. */
export function begunByText(begunBy: BegunBy | undefined): string {
  if (begunBy?.kind !== 'event') return ''
  const through = beginners(begunBy).filter(server => server !== begunBy.server)
  const before = through.length === 0 ? '' : `, which came of an event of ${through.map(server => clip(server)).join(' and ')}`
  return ` in a turn that the event ${quoted(begunBy.eventId)} of ${clip(begunBy.server)} began${before}`
}
