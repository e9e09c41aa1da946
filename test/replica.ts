/** One of several servers on one store, as a process: says its address on standard output, ends with its standard input. */
import { createServer } from '../src/server/index.ts'

const server = createServer({
  name: 'replica',
  version: '1.0.0',
  store: process.env['STORE'] ?? 'memory:',
  secret: process.env['SECRET'],
})
server.tool('who', {}, (_, { client, revision }) => `${process.pid} ${client.info?.name} ${revision}`)
server.tool('count', {}, async (_, { state }) => {
  const { count = 0 } = (await state.get<{ count: number }>()) ?? {}
  await state.set({ count: count + 1 })
  return `${count + 1}`
})
server.tool('where', {}, async (_, ctx) => `${process.pid} ${(await ctx.roots())[0]?.uri}`)
server.tool('slow', { task: 'optional' }, () => `done by ${process.pid}`)
server.tool('endless', { task: 'optional' }, () => new Promise(() => {}))
server.resource('note://{id}', { name: 'note' }, () => 'a note')
/** What the running calls of `climb` do at a word. */
const climbers = new Set<(word: string) => void>()
server.tool('climb', {}, async (_, ctx) => {
  let step = 0
  const up = (): void => ctx.progress(++step)
  const top = new Promise<void>(resolve =>
    climbers.add(word => {
      if (word === 'step') up()
      if (word === 'top') resolve()
    }),
  )
  up()
  await top
  return `climbed by ${process.pid}`
})
const { url } = await server.listen()
console.log(url)
process.stdin.setEncoding('utf8').on('data', (words: string) => {
  for (const word of words.trim().split('\n')) {
    if (word.startsWith('note://')) server.resourceUpdated(word)
    for (const climber of climbers) climber(word)
  }
})
process.stdin.on('end', () => void server.close().then(() => process.exit()))
