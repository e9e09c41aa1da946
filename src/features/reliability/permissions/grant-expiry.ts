/** Notifies what was opened under a grant when the grant ends. The code that watches grants is loaded with the first use. */
import type { Clock } from '../../../core/clock.ts'
import type { GrantEnds } from '../../../core/grant/ends.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Trace } from '../../../core/log.ts'
import type { Admission } from '../../mcp/authorization/messages.ts'

/** Calls `ended` when a grant ends; returns a function that cancels. */
export type OnGrantEnd = (admission: Pick<Admission, 'owner' | 'id'>, ended: (reason: string) => void) => () => void

// What watching grants needs.
interface LapsesParts {
  readonly grants: () => Promise<Grants>
  readonly clock: Clock
  readonly trace: Trace
}

// The loaded watcher.
interface Listening {
  readonly ends: GrantEnds
  readonly text: typeof import('../../../core/grant/ends.ts').lapseText
}

/** Watches grants, loading the code on first use. */
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
    // A failed attempt is forgotten, so the next call tries again.
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
          // If the end of a grant cannot be observed, what it opened is ended now.
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
