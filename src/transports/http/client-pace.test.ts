import { afterEach, expect, it } from 'vitest'
import { afterTest, cleanUp, events, hear, notice, request, result, serve } from '../../../test/transports/http-test-server.ts'
import { httpClientConnection } from './client.ts'

afterEach(cleanUp)

/** How many frames came in the fullest turn of the event loop. */
function counting(frames: readonly unknown[]) {
  let most = 0
  let before = 0
  let on = true
  const look = (): void => {
    most = Math.max(most, frames.length - before)
    before = frames.length
    if (on) setImmediate(look)
  }
  look()
  afterTest(() => {
    on = false
  })
  return () => most
}

it.each([
  ['short messages', 5_000, ''],
  ['long ones', 300, 'x'.repeat(5_000)],
  ['a few', 10, 'x'.repeat(100)],
])('%s on a stream are all heard, in their order, but only so many in one turn', async (_, count, filling) => {
  const server = await serve((seen, response) => {
    events(response)
    let text = ''
    for (let index = 0; index < count; index++)
      text += `data: {"jsonrpc":"2.0","method":"n","params":{"n":${index},"f":"${filling}"}}\n\n`
    response.end(`${text}data: ${result(seen.id)}\n\n`)
  })
  const connection = httpClientConnection(server.url)
  const heard = await hear(connection)
  const most = counting(heard.frames)
  await connection.send(request(1), { id: 1 })
  const numbers = heard.frames.slice(0, -1).map(({ text }) => JSON.parse(text).params.n)
  expect(numbers).toEqual(Array.from({ length: count }, (_, index) => index))
  expect(most()).toBeLessThanOrEqual(64 + 4_096 / 50)
})

it('messages that the server does not take pile up to a limit, and are refused beyond it', async () => {
  const server = await serve(() => undefined)
  const connection = httpClientConnection(server.url)
  await hear(connection)
  const sent = Array.from({ length: 1_010 }, () => Promise.resolve(connection.send(notice)))
  const outcomes = Promise.allSettled(sent)
  await expect(sent[1_000]).rejects.toMatchObject({ kind: 'too-large' })
  await connection.close()
  const refused = (await outcomes).filter(({ status }, index) => status === 'rejected' && index >= 1_000)
  expect(refused).toHaveLength(10)
})
