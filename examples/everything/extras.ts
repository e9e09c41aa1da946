/** Tools for what the other fixtures leave out: structured results, links, pages a user is sent to, models that use tools. */
import { type Context, link, reply, type SamplingMessage, type Server, text } from 'vivarium/server'
import { z } from 'zod'

export function addExtras(server: Server): void {
  server.tool(
    'test_structured_output',
    {
      description: 'Answers with numbers that fit a schema',
      annotations: { readOnlyHint: true },
      output: z.object({ temperature: z.number(), unit: z.enum(['C', 'F']) }),
    },
    () => ({ temperature: 21.5, unit: 'C' as const }),
  )

  server.tool('test_resource_link', { description: 'Answers with a link to a resource' }, () =>
    reply({ content: [link('test://static-text', { name: 'Static text' })] }),
  )

  server.tool('test_url_elicitation', { description: 'Sends the user to a page' }, async (_, ctx) => {
    const { action } = await ctx.elicit({ message: 'Please sign in', url: 'https://example.com/sign-in' })
    return `The user answered: ${action}`
  })

  server.tool('test_sampling_with_tools', { description: "Lets the client's model use a tool" }, (_, ctx) => addWithModel(ctx))
}

const adding = {
  name: 'add',
  description: 'Adds two numbers',
  inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
}

/** Asks until the model has used the tool as often as it wants. */
async function addWithModel(ctx: Context): Promise<string> {
  const messages: SamplingMessage[] = [{ role: 'user', content: text('What is 1 + 2? Use the tool.') }]
  for (let round = 0; round < 3; round++) {
    const { content } = await ctx.sample({ messages, maxTokens: 100, tools: [adding] }, { key: `round-${round}` })
    const blocks = 'type' in content ? [content] : content
    const uses = blocks.filter(block => block.type === 'tool_use')
    if (uses.length === 0) return blocks.map(block => (block.type === 'text' ? block.text : '')).join('\n')
    messages.push({ role: 'assistant', content: blocks })
    const results = uses.map(({ id, input }) => ({
      type: 'tool_result' as const,
      toolUseId: id,
      content: [text(String(Number(input['a']) + Number(input['b'])))],
    }))
    messages.push({ role: 'user', content: results })
  }
  return 'The model did not finish'
}
