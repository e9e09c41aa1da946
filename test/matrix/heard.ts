/** Waiting to hear of a change, without knowing when the stream for it is open. */
import { expect } from 'vitest'

/**
 * Nobody tells when a stream has reached the server: the change is made again until it is heard. Made twice it is taken back, and
 * whoever tells of several changes as one has nothing to tell then: so each stands for longer than the one before.
 */
export async function heard(changes: AsyncGenerator<unknown, void, undefined>, change: () => Promise<unknown>): Promise<void> {
  let done = false
  const first = changes.next().then(({ done: over }) => {
    done = true
    expect(over).toBe(false)
  })
  for (let tries = 0; tries < 12 && !done; tries++) {
    await change()
    const standsMs = Math.min(10 * 2 ** tries, 2_000)
    await Promise.race([first, new Promise(resolve => setTimeout(resolve, standsMs))])
  }
  if (!done) throw new Error('No change was heard of, though each of the last ones stood for 2 s')
  await first
  await changes.return()
}
