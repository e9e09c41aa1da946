/** Tools that fail, each in its way. */
import type { Server } from 'vivarium/server'
import { shows } from './shows.ts'

export function addFailures(server: Server): void {
  let transient = 0
  server.tool('fail_for_now', { description: 'Fails, then works', meta: shows('failure:transient') }, (_, ctx) => {
    if (++transient % 2 === 1)
      throw ctx.problem('SERVER_UNAVAILABLE', 'Not right now', { category: 'transient', retryAfter: 1_000 })
    return 'Works again'
  })
  let permanent = 0
  server.tool('fail_for_good', { description: 'Fails, always in another way', meta: shows('failure:permanent') }, (_, ctx) => {
    throw ctx.problem('NO_SUCH_FISH', `There is no fish ${++permanent}`, {
      category: 'permanent',
      suggestion: 'Look for another one',
      documentation: 'http://tickets.example/fish',
      details: { long: 'x'.repeat(20_000) },
    })
  })
  server.tool('fail_unexpectedly', { description: 'Has a mistake in it', meta: shows('failure:unexpected') }, () => {
    const broken: { fish?: { swim(): string } } = {}
    return (broken.fish as { swim(): string }).swim()
  })
}
