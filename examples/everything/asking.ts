/** Tools that ask in the middle of a call: the user by a form, or the client's model. */
import { type Context, type Elicited, type Server, text } from 'vivarium/server'
import { z } from 'zod'

/** Every kind of field, each with a default. */
const defaults = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'User name', default: 'John Doe' },
    age: { type: 'integer', description: 'User age', default: 30 },
    score: { type: 'number', description: 'User score', default: 95.5 },
    status: { type: 'string', description: 'User status', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', description: 'Verification status', default: true },
  },
  required: [],
}

/** The five ways to offer a choice. */
const choices = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
  },
  required: [],
}

export function addAsking(server: Server): void {
  addForms(server)
  addModel(server)
}

function addForms(server: Server): void {
  server.tool(
    'test_elicitation',
    { description: 'Asks the user for a name and an address', input: z.object({ message: z.string() }) },
    async ({ message }, ctx) => {
      const schema = z.object({
        username: z.string().describe("User's response"),
        email: z.string().describe("User's email address"),
      })
      return `User response: ${shown(await ctx.elicit({ message, schema }))}`
    },
  )

  server.tool(
    'test_elicitation_sep1034_defaults',
    { description: 'Asks with a form whose fields have defaults' },
    async (_, ctx) => {
      const answer = await ctx.elicit({ message: 'Please review and update the form fields with defaults', schema: defaults })
      return `Elicitation completed: ${shown(answer)}`
    },
  )

  server.tool('test_elicitation_sep1330_enums', { description: 'Asks with a form of choices' }, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Please select options from the enum fields', schema: choices })
    return `Elicitation completed: ${shown(answer)}`
  })

  server.tool('test_streaming_elicitation', { description: 'Reports progress, then asks the user' }, async (_, ctx) => {
    ctx.progress(0, { total: 1, message: 'About to ask' })
    return (await ctx.confirm('Shall this go on?', { key: 'go_on' })) ? 'It goes on' : 'It stops here'
  })
}

function addModel(server: Server): void {
  server.tool(
    'test_sampling',
    { description: "Asks the client's model", input: z.object({ prompt: z.string() }) },
    async ({ prompt }, ctx) => `LLM response: ${await askModel(ctx, prompt)}`,
  )

  server.tool('test_missing_capability', { description: 'Works only for clients that have a model to ask' }, (_, ctx) =>
    askModel(ctx, 'Say yes', { maxTokens: 10 }),
  )
}

/** Puts one question to the client's model and gives the text of what it said. */
export async function askModel(
  ctx: Context,
  question: string,
  { maxTokens = 100, key }: { maxTokens?: number; key?: string } = {},
) {
  const messages = [{ role: 'user' as const, content: text(question) }]
  const { content } = await ctx.sample({ messages, maxTokens }, key === undefined ? {} : { key })
  const blocks = 'type' in content ? [content] : content
  return blocks.map(block => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n')
}

function shown(answer: Elicited<unknown>): string {
  return `action=${answer.action}, content=${JSON.stringify(answer.action === 'accept' ? answer.content : {})}`
}

function titled(...titles: readonly string[]): readonly { const: string; title: string }[] {
  return titles.map((title, index) => ({ const: `value${index + 1}`, title }))
}
