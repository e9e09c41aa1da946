/** Tools that ask in the middle of a call: the user by a form, or the client's model. */
import type { Elicited, SamplingResult, Server } from 'vivarium/server'
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

  server.tool(
    'test_sampling',
    { description: "Asks the client's model", input: z.object({ prompt: z.string() }) },
    async ({ prompt }, ctx) => {
      const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: prompt } }]
      return `LLM response: ${said(await ctx.sample({ messages, maxTokens: 100 }))}`
    },
  )

  server.tool('test_missing_capability', { description: 'Works only for clients that have a model to ask' }, async (_, ctx) => {
    const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'Say yes' } }]
    return said(await ctx.sample({ messages, maxTokens: 10 }))
  })
}

/** The text of what a model said. */
export function said({ content }: SamplingResult): string {
  const blocks = 'type' in content ? [content] : content
  return blocks.map(block => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n')
}

function shown(answer: Elicited<unknown>): string {
  return `action=${answer.action}, content=${JSON.stringify(answer.action === 'accept' ? answer.content : {})}`
}

function titled(...titles: readonly string[]): readonly { const: string; title: string }[] {
  return titles.map((title, index) => ({ const: `value${index + 1}`, title }))
}
