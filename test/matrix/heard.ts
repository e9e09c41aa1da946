/** Waiting to hear of a change, without knowing when the stream for it is open. */
import { expect } from 'vitest'

/** Nobody tells when a stream has reached the server: the change is made again until it is heard. */
export async function heard(changes: AsyncGenerator<unknown, void, undefined>, change: () => Promise<unknown>): Promise<void> {
  let done = false
  const first = changes.next().then(({ done: over }) => {
    done = true
    expect(over).toBe(false)
  })
  for (let tries = 0; tries < 200 && !done; tries++) {
    await change()
    await Promise.race([first, new Promise(resolve => setTimeout(resolve, 10))])
  }
  await first
  await changes.return()
}
