/** What the peers offer, the same on both majors of the official SDK; `kit` hides how each of them is told. */

const text = value => ({ content: [{ type: 'text', text: value }] })

/** Shared by all instances of one process: over HTTP some make a server for every request. */
let stopped = 0

/** Registers everything on one server. `kit`: z, shape, progress, log, signal, ask, changed. */
export function offer(server, kit) {
  const { z, shape } = kit
  server.registerTool(
    'greet',
    { title: 'Greet', inputSchema: shape({ name: z.string().min(1) }), outputSchema: shape({ greeting: z.string() }) },
    async ({ name }) => ({ ...text(`Hello, ${name}`), structuredContent: { greeting: `Hello, ${name}` } }),
  )
  server.registerTool('fail', {}, async () => ({ ...text('It did not work'), isError: true }))
  server.registerTool('work', {}, async ctx => {
    await kit.log(ctx, 'debug', 'Looking for the fish')
    await kit.progress(ctx, { progress: 1, total: 2, message: 'found' })
    await kit.log(ctx, 'warning', { fish: 'small' })
    await kit.progress(ctx, { progress: 2, total: 2 })
    return text('Done')
  })
  server.registerTool('wait', {}, async ctx => {
    const gone = new Promise(resolve => kit.signal(ctx).addEventListener('abort', resolve))
    await kit.progress(ctx, { progress: 1 })
    await gone
    stopped++
    return text('Stopped')
  })
  server.registerTool('stopped', {}, async () => text(`${stopped}`))
  server.registerTool('change', {}, async ctx => {
    kit.changed(ctx, server)
    return text('Changed')
  })
  offerAsking(server, kit)
  offerContent(server, kit)
}

const order = {
  type: 'object',
  properties: { fish: { type: 'string' }, count: { type: 'integer' } },
  required: ['fish', 'count'],
}
const question = { messages: [{ role: 'user', content: { type: 'text', text: 'What rhymes with fish?' } }], maxTokens: 10 }

function offerAsking(server, { ask }) {
  server.registerTool('order', {}, ctx =>
    ask(ctx, 'elicitation/create', { message: 'What shall it be?', requestedSchema: order }, ({ action, content }) =>
      text(action === 'accept' ? `${content.count} ${content.fish}` : `Nothing (${action})`),
    ),
  )
  server.registerTool('rhyme', {}, ctx =>
    ask(ctx, 'sampling/createMessage', question, ({ content }) => text(`The model says ${content.text}`)),
  )
  server.registerTool('where', {}, ctx =>
    ask(ctx, 'roots/list', undefined, ({ roots }) => text(roots.map(({ name }) => name).join(', '))),
  )
}

function offerContent(server, { z, shape, completable, ResourceTemplate }) {
  server.registerResource('today', 'memo://today', { mimeType: 'text/plain' }, async uri => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Feed the fish' }],
  }))
  server.registerResource('day', new ResourceTemplate('memo://days/{day}', { list: undefined }), {}, async (uri, { day }) => ({
    contents: [{ uri: uri.href, text: `Rest on ${day}` }],
  }))
  const topic = completable(z.string(), value => ['whales', 'weather'].filter(word => word.startsWith(value)))
  server.registerPrompt('brief', { argsSchema: shape({ topic }) }, ({ topic: about }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Brief me on ${about}.` } }],
  }))
}
