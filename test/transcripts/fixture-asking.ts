/** Tools of the fixture that ask whoever called them: the user, the model, the client. */
import { jsonSchema, type Server } from '../../src/server/index.ts'

interface Order {
  fish: string
  count: number
  fresh?: boolean
}

const order = jsonSchema<Order>({
  type: 'object',
  properties: {
    fish: {
      type: 'string',
      title: 'Fish',
      oneOf: [
        { const: 'cod', title: 'Atlantic cod' },
        { const: 'hake', title: 'Hake' },
      ],
    },
    count: { type: 'integer', minimum: 1, default: 1 },
    fresh: { type: 'boolean', default: true },
  },
  required: ['fish', 'count'],
})

export function addAsking(server: Server): void {
  server.tool('order', { description: 'Asks the user what to order' }, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'What shall it be?', schema: order })
    return answer.action === 'accept' ? `${answer.content.count} ${answer.content.fish}` : `Nothing (${answer.action})`
  })
  server.tool('pay', { description: 'Sends the user to a page' }, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Pay for the fish', url: 'https://example.com/pay' })
    if (answer.action === 'accept') ctx.elicitationDone(answer.elicitationId)
    return `Payment: ${answer.action}`
  })
  server.tool('rhyme', { description: 'Asks the model for a rhyme' }, async (_, ctx) => {
    const { content } = await ctx.sample({
      messages: [{ role: 'user', content: { type: 'text', text: 'What rhymes with fish?' } }],
      maxTokens: 10,
    })
    const block = Array.isArray(content) ? content[0] : content
    return `The model says ${block?.type === 'text' ? block.text : 'nothing'}`
  })
  server.tool('ode', { description: 'Asks the model for an ode, which may take it a while' }, async (_, ctx) => {
    const { content } = await ctx.sample(
      { messages: [{ role: 'user', content: { type: 'text', text: 'An ode to fish!' } }], maxTokens: 100 },
      { task: { ttl: '1m' } },
    )
    const block = Array.isArray(content) ? content[0] : content
    return block?.type === 'text' ? block.text : 'No ode'
  })
  server.tool('crew', { description: 'Asks the user who comes along, who may have to think' }, async (_, ctx) =>
    (await ctx.confirm('Does the cat come along?', { task: true })) ? 'With the cat' : 'Without the cat',
  )
  server.tool('where', { description: 'Asks which folders the client works in' }, async (_, ctx) => {
    const roots = await ctx.roots()
    return roots.map(root => root.name ?? root.uri).join(', ')
  })
  server.tool('plan', { description: 'Asks two things at once, then a third' }, async (_, ctx) => {
    const started = await ctx.once('started', () => 'at dawn')
    const [fish, roots] = await Promise.all([
      ctx.elicit({ message: 'Which fish?', schema: order, key: 'fish' }),
      ctx.roots({ key: 'folders' }),
    ])
    const sure = await ctx.confirm('Sure?', { key: 'sure' })
    const what = fish.action === 'accept' ? fish.content.fish : 'nothing'
    return `${what} from ${roots.length} folder(s), ${sure ? 'sure' : 'not sure'}, ${started}`
  })
}
