/** Tools that cost something: one that is metered, one of which there is only so much, one that needs a yes to its price. */
import type { Server, ServerOptions } from 'vivarium/server'
import { z } from 'zod'

/** Suggests the greeting to whoever wants to greet somebody in another way. */
export const costOptions: Pick<ServerOptions, 'cost' | 'intent'> = {
  cost: { unitLabel: 'credits' },
  intent: {
    suggest: ({ tool, intent }) =>
      tool !== 'greet' && /greet|welcome/i.test(intent) ? { tool: 'greet', reason: 'It greets by name, for nothing' } : undefined,
  },
}

export function addCosts(server: Server): void {
  server.tool(
    'cost_translate',
    {
      description: 'Costs a credit for each word',
      input: z.object({ text: z.string() }),
      cost: { category: 'metered', estimatedUnits: 10, unitsFor: args => wordsOf(String(args['text'])) },
      latency: 'instant',
    },
    ({ text }, ctx) => {
      ctx.cost.add(wordsOf(text))
      return text.toUpperCase()
    },
  )
  server.tool(
    'cost_scarce',
    { description: 'Can be called five times a minute', quota: { calls: 5, per: '1m' }, latency: 'instant' },
    () => 'One less.',
  )
  server.tool(
    'cost_print',
    {
      description: 'Runs only when the user has agreed to its price',
      cost: { category: 'requires_approval', estimatedUnits: 40 },
    },
    () => 'Printed.',
  )
}

function wordsOf(text: string): number {
  return text.split(/\s+/).filter(word => word !== '').length
}
