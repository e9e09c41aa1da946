/** Tools that answer by themselves: every kind of content, failure, progress, log, and a stream that lets go. */
import { setTimeout as wait } from 'node:timers/promises'
import { audio, cite, image, readMedia, reply, resource, type Server, text } from 'vivarium/server'
import { z } from 'zod'
import { pixel, silence } from './assets.ts'

export function addTools(server: Server): void {
  addContent(server)
  addBehaviour(server)
  addOrigins(server)
  server.tool(
    'greet',
    { description: 'Greets somebody by name', input: z.object({ name: z.string() }) },
    ({ name }) => `Hello, ${name}!`,
  )
}

function addContent(server: Server): void {
  server.tool(
    'test_simple_text',
    { description: 'Answers with a line of text' },
    () => 'This is a simple text response for testing.',
  )

  server.tool('test_image_content', { description: 'Answers with a picture of one red pixel' }, () =>
    reply({ content: [image(pixel)] }),
  )

  server.tool('test_audio_content', { description: 'Answers with a moment of silence' }, () =>
    reply({ content: [audio(silence())] }),
  )

  server.tool('test_embedded_resource', { description: 'Answers with a resource inside the result' }, () =>
    reply({
      content: [
        resource({ uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' }),
      ],
    }),
  )

  server.tool('test_multiple_content_types', { description: 'Answers with text, a picture and a resource together' }, () =>
    reply({
      content: [
        text('Multiple content types test:'),
        image(pixel),
        resource({
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: JSON.stringify({ test: 'data', value: 123 }),
        }),
      ],
    }),
  )
}

/** Results that say where they come from, and media that are looked at before they are decoded. */
function addOrigins(server: Server): void {
  server.tool('cited_answer', { description: 'Answers with a fact and its source', provenance: true }, () =>
    reply({
      content: [text('The picture has one pixel', cite({ source: 'assets.ts', location: { line: 4 }, confidence: 'exact' }))],
    }),
  )

  server.tool(
    'measure_picture',
    {
      description: 'Tells the size and the digest of a picture',
      input: z.object({ picture: z.object({ mimeType: z.string(), data: z.string() }) }),
      media: { input: ['image/*'], maxInputBytes: 1_000_000, strict: true },
    },
    async ({ picture }) => {
      const { mime, size, digest } = await readMedia(picture)
      return `${mime}, ${size} bytes, ${digest}`
    },
  )
}

function addBehaviour(server: Server): void {
  server.tool('test_error_handling', { description: 'Fails, always' }, () => {
    throw new Error('This tool intentionally returns an error for testing')
  })

  server.tool('test_tool_with_progress', { description: 'Tells three times how far it has come' }, async (_, ctx) => {
    ctx.progress(0, { total: 100 })
    await wait(50)
    ctx.progress(50, { total: 100 })
    await wait(50)
    ctx.progress(100, { total: 100 })
    return 'Done in three steps'
  })

  server.tool(
    'count_slowly',
    { description: 'Counts to five: each number is there as soon as it is counted' },
    async function* () {
      for (let number = 1; number <= 5; number++) {
        await wait(50)
        yield `${number} `
      }
    },
  )

  server.tool('test_tool_with_logging', { description: 'Writes three log messages while it works' }, async (_, ctx) => {
    ctx.log('info', 'Tool execution started')
    await wait(50)
    ctx.log('info', 'Tool processing data')
    await wait(50)
    ctx.log('info', 'Tool execution completed')
    return 'Logged three messages'
  })

  server.tool('test_logging_tool', { description: 'Logs one message for those who want to hear it' }, (_, ctx) => {
    ctx.log('info', 'Somebody listens')
    return 'Logged, if a level was asked for'
  })

  server.tool(
    'test_reconnection',
    { description: 'Lets the connection go and answers when the caller is back' },
    async (_, ctx) => {
      ctx.release(200)
      await wait(300)
      return 'The answer waited for you'
    },
  )
}
