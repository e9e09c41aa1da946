import { afterEach, describe, expect, test } from 'vitest'
import { openWorld, type World, type WorldOptions } from '../../../test/hosting/loop-world.ts'
import { createServer, type Server } from '../../server/index.ts'
import { scripted } from '../models/scripted.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function world(options: WorldOptions): Promise<World> {
  const opened = await openWorld(options)
  worlds.push(opened)
  return opened
}

function library(): Server {
  const server = createServer({ name: 'library', version: '1.0.0' })
  server.resource('book://1', { name: 'First book', mimeType: 'text/plain' }, () => 'Call me Ishmael.')
  server.prompt(
    'review',
    {
      description: 'Reviews code',
      arguments: {
        language: {
          description: 'Which',
          required: true,
          complete: value => ['rust', 'ruby', 'go'].filter(one => one.startsWith(value)),
        },
        focus: {},
      },
    },
    ({ language, focus }) => `Review this ${language} code${focus === undefined ? '' : ` for ${focus}`}.`,
  )
  return server
}

describe('resources', () => {
  test('are put beside a message by the user', async () => {
    const model = scripted(['Ah, Melville.'])
    const { loop } = await world({ model, servers: { library: library() } })
    await (await loop.conversation('c').send('Who wrote this?', { attach: [{ server: 'library', uri: 'book://1' }] })).done
    expect(model.requests[0]?.messages[0]).toEqual({
      role: 'user',
      content: [
        { type: 'text', text: '<resource server="library" uri="book://1" type="text/plain">\nCall me Ishmael.\n</resource>' },
        { type: 'text', text: 'Who wrote this?' },
      ],
    })
  })

  test('are listed and read by the model', async () => {
    const model = scripted([
      { calls: [{ name: 'list_resources' }, { name: 'read_resource', arguments: { server: 'library', uri: 'book://1' } }] },
      'Read.',
    ])
    const { loop } = await world({ model, servers: { library: library() } })
    const turn = await loop.conversation('c').send('Read the book')
    await turn.done
    expect(turn.calls[0]?.outcome?.content).toEqual([{ type: 'text', text: 'library: book://1 (First book)' }])
    expect(JSON.stringify(turn.calls[1]?.outcome?.content)).toContain('Call me Ishmael.')
  })

  test('of a server that is not there cannot be attached, and nothing is written', async () => {
    const { loop } = await world({ model: scripted('x'), servers: { library: library() } })
    const talk = loop.conversation('c')
    await expect(talk.send('x', { attach: [{ server: 'nowhere', uri: 'a:b' }] })).rejects.toThrow('The server nowhere is unknown')
    expect(await talk.turns()).toEqual([])
  })
})

describe('prompts', () => {
  test.each([
    ['/review rust', 'Review this rust code.'],
    ['/review rust memory leaks', 'Review this rust code for memory leaks.'],
    ['/review focus="two words" language=go', 'Review this go code for two words.'],
    ['/library:review go', 'Review this go code.'],
  ])('%s', async (said, text) => {
    const model = scripted(['Fine.'])
    const { loop } = await world({ model, servers: { library: library() } })
    await (await loop.conversation('c').send(said)).done
    const quoted = `<server-prompt server="library" name="review">\n${text}\n</server-prompt>`
    expect(model.requests[0]?.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: quoted }] }])
  })

  test('that several servers have are called by server and name', async () => {
    const { loop } = await world({ model: scripted('x'), servers: { one: library(), two: library() } })
    expect((await loop.prompts()).map(({ command }) => command)).toEqual(['one:review', 'two:review'])
  })

  test('without what they need are refused, and those that are not there too', async () => {
    const { loop } = await world({ model: scripted('x'), servers: { library: library() } })
    await expect(loop.conversation('c').send('/review')).rejects.toMatchObject({
      message: '/review needs language',
      suggestion: 'Write /review language=…',
    })
    await expect(loop.conversation('c').send('/nothing')).rejects.toMatchObject({ message: 'There is no prompt /nothing' })
  })

  test('two slashes are one that means nothing', async () => {
    const model = scripted(['Fine.'])
    const { loop } = await world({ model })
    await (await loop.conversation('c').send('//etc/hosts')).done
    expect(model.requests[0]?.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: '/etc/hosts' }] }])
  })

  test.each([
    ['/re', ['/review']],
    ['/review ', ['/review language=', '/review focus=']],
    ['/review language=ru', ['/review language=rust', '/review language=ruby']],
    ['no slash', []],
  ])('"%s" is completed', async (line, completions) => {
    const { loop } = await world({ model: scripted('x'), servers: { library: library() } })
    expect(await loop.conversation('c').complete(line)).toEqual(completions)
  })
})
