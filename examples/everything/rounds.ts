/**
 * Tools whose questions have names. Written as linear code: where the wire has no requests to the client, each question
 * ends the call with `input_required`, and the answer enters the handler again (2026-07-28 basic/patterns/mrtr).
 */
import type { Context, Elicited, Root, Server } from 'vivarium/server'
import { z } from 'zod'
import { askModel } from './asking.ts'

const name = z.object({ name: z.string() })

export function addRounds(server: Server): void {
  addSingle(server)
  addSeveral(server)
  addState(server)
}

function addSingle(server: Server): void {
  server.tool('test_input_required_result_elicitation', { description: 'Asks the user one thing' }, async (_, ctx) =>
    greeting(await askName(ctx)),
  )

  server.tool('test_input_required_result_sampling', { description: "Asks the client's model one thing" }, async (_, ctx) =>
    askModel(ctx, 'What is the capital of France?', { key: 'capital_question' }),
  )

  server.tool(
    'test_input_required_result_list_roots',
    { description: 'Asks for the folders the client works in' },
    async (_, ctx) => listed(await ctx.roots({ key: 'client_roots' })),
  )
}

function addSeveral(server: Server): void {
  server.tool('test_input_required_result_multiple_inputs', { description: 'Asks three things at once' }, async (_, ctx) => {
    const [user, wish, roots] = await Promise.all([
      askName(ctx),
      askModel(ctx, 'Generate a greeting', { key: 'greeting', maxTokens: 50 }),
      ctx.roots({ key: 'client_roots' }),
    ])
    return `${greeting(user)} ${wish} ${listed(roots)}`
  })

  server.tool('test_input_required_result_multi_round', { description: 'Asks one thing after the other' }, async (_, ctx) => {
    const first = await ctx.elicit({ key: 'step1', message: 'Step 1: What is your name?', schema: name })
    if (first.action !== 'accept') return `Stopped at step 1: ${first.action}`
    const schema = z.object({ color: z.string() })
    const second = await ctx.elicit({ key: 'step2', message: 'Step 2: What is your favorite color?', schema })
    return second.action === 'accept'
      ? `${first.content.name} likes ${second.content.color}`
      : `Stopped at step 2: ${second.action}`
  })

  server.tool(
    'test_input_required_result_capabilities',
    { description: 'Asks only what the client said it can answer' },
    async (_, ctx) => {
      const asked = [
        ...(ctx.supports('elicitation') ? [askName(ctx).then(greeting)] : []),
        ...(ctx.supports('sampling') ? [askModel(ctx, 'What is the capital of France?', { key: 'capital_question' })] : []),
      ]
      const answers = await Promise.all(asked)
      return answers.length === 0 ? 'There was nobody to ask' : answers.join('\n')
    },
  )
}

function addState(server: Server): void {
  for (const variant of ['request_state', 'tampered_state']) {
    server.tool(
      `test_input_required_result_${variant}`,
      { description: 'Asks once, with sealed state that must come back as it was' },
      async (_, ctx) => {
        // Kept in the sealed state between the two entries, so that the answer can prove it came back.
        const begun = await ctx.once('begun', () => Date.now())
        const answer = await ctx.elicit({ key: 'confirm', message: 'Please confirm', schema: z.object({ ok: z.boolean() }) })
        return `state-ok: ${answer.action}, asked at ${new Date(begun).toISOString()}`
      },
    )
  }
}

/** Asks the user for a name. */
export function askName(ctx: Context): Promise<Elicited<{ name: string }>> {
  return ctx.elicit({ key: 'user_name', message: 'What is your name?', schema: name })
}

function greeting(answer: Elicited<{ name: string }>): string {
  return answer.action === 'accept' ? `Hello, ${answer.content.name}!` : 'Hello, whoever you are!'
}

function listed(roots: readonly Root[]): string {
  return `Roots: ${roots.map(root => (root.name === undefined ? root.uri : `${root.name} (${root.uri})`)).join(', ') || 'none'}`
}
