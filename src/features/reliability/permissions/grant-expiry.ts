/** Tells what was opened under a grant when that grant ends. The code that watches grants is loaded when the first one is used. */
import type { Clock } from '../../../core/clock.ts'
import type { GrantEnds } from '../../../core/grant/ends.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Trace } from '../../../core/log.ts'
import type { Admission } from '../../mcp/authorization/messages.ts'

/** Calls `ended` when a grant is over. Gives what to call when nobody cares any more. */
export type OnGrantEnd = (admission: Pick<Admission, 'owner' | 'id'>, ended: (reason: string) => void) => () => void

interface LapsesParts {
  readonly grants: () => Promise<Grants>
  readonly clock: Clock
  readonly trace: Trace
}

interface Listening {
  readonly ends: GrantEnds
  readonly text: typeof import('../../../core/grant/ends.ts').lapseText
}

export function lazyEnds({ grants, clock, trace }: LapsesParts): { readonly on: OnGrantEnd; close(): void } {
  let opening: Promise<Listening> | undefined
  let closed = false
  const failed = (error: unknown): void => {
    if (!closed) trace('grant-ends-not-read', error)
  }
  const open = async (): Promise<Listening> => {
    const [{ GrantEnds: Ends, lapseText: text }, opened] = await Promise.all([import('../../../core/grant/ends.ts'), grants()])
    return { ends: new Ends({ grants: opened, clock, failed }), text }
  }
  const load = (): Promise<Listening> => {
    opening ??= open().catch(error => {
      opening = undefined
      throw error
    })
    return opening
  }
  return {
    on: ({ owner, id }, ended) => {
      let release = (): void => {}
      let wanted = true
      load().then(
        ({ ends, text }) => {
          if (wanted && !closed) release = ends.on(owner, id, why => ended(text(why)))
        },
        error => {
          failed(error)
          // Nothing may outlive a grant whose end nobody would notice.
          if (wanted) ended('Whether the grant that let it in still holds cannot be told')
        },
      )
      return () => {
        wanted = false
        release()
      }
    },
    close: () => {
      closed = true
      opening?.then(
        ({ ends }) => ends.close(),
        () => {},
      )
    },
  }
}
