/** An event that clients subscribe to, and a tool that makes it happen. */
import type { Server } from 'vivarium/server'
import { z } from 'zod'

export function addEvents(server: Server): void {
  const payload = z.object({ level: z.enum(['low', 'high']), text: z.string() })
  const noted = server.event('test_noted', { description: 'Somebody noted something; filter by its level', payload })
  server.tool('test_emit_event', { description: 'Makes the event test_noted happen', input: payload }, async note => {
    const hint = { tool: 'test_simple_text', reason: 'To see what a hint looks like' }
    return `Emitted ${await noted.emit(note, { hint })}`
  })
}
