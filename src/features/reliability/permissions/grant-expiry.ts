/** Notifies what was opened under a grant when the grant ends. The code that watches grants is loaded with the first use. */
import { lazily, type ServerKit } from '../../../engine/server-feature.ts'
import type { GrantedRights } from '../../mcp/authorization/messages.ts'

/** Watches grants, loading the code on first use. `on` calls `ended` when a grant ends, and returns a function that cancels. */
export function lazyEnds({ grants, clock, trace }: Pick<ServerKit, 'grants' | 'clock' | 'trace'>): {
  readonly on: GrantedRights['lapses']
  close(): void
} {
  let closed = false
  const failed = (error: unknown): void => {
    if (!closed) trace('grant-ends-not-read', error)
  }
  const listening = lazily(async () => {
    const [{ GrantEnds, lapseText }, opened] = await Promise.all([import('../../../core/grant/ends.ts'), grants()])
    return { ends: new GrantEnds({ grants: opened, clock, failed }), lapseText }
  })
  return {
    on: ({ owner, id }, ended) => {
      let release = (): void => {}
      let wanted = true
      listening.open().then(
        ({ ends, lapseText }) => {
          if (wanted && !closed) release = ends.on(owner, id, why => ended(lapseText(why)))
        },
        error => {
          failed(error)
          // If the end of a grant cannot be observed, what it opened is ended now.
          if (wanted) ended('The server could not check whether the grant is still valid')
        },
      )
      return () => {
        wanted = false
        release()
      }
    },
    close: () => {
      closed = true
      void listening.opened().then(found => found?.ends.close())
    },
  }
}
