/** Servers that answer what a host does with the next event, for ever if they could. */
import { expect, onTestFinished, test } from 'vitest'
import { createHost, type HostOptions } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'

async function hosted(server: Server, options: Partial<HostOptions>) {
  onTestFinished(() => server.close())
  const target = () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
  const host = await createHost({ servers: { echo: { target, live: { enable: ['*'] } } }, ...options })
  onTestFinished(() => host.close())
  await host.open()
  return host
}

test('a tool that pushes an event whenever an event has it called is called eight times, and then waited with', async () => {
  const server = createServer({ name: 'echo', version: '1.0.0' })
  const echo = server.featureSet('echo', { description: 'Answers itself', uses: ['pushEvents', 'tools'] })
  let called = 0
  server.tool('shout', {}, async () => {
    called++
    await (await echo.push({ content: `Heard a shout, number ${called}` })).answered
    return 'Done'
  })
  const model = scripted((_, turn) => (turn % 2 === 0 ? { calls: [{ name: 'shout' }] } : 'Well.'), { again: true })
  const host = await hosted(server, { model })
  await echo.push({ content: 'It begins' })
  const waiting = async () => (await host.inbox.list({ server: 'echo', state: 'waiting' })).filter(({ notBefore }) => notBefore)
  await expect.poll(waiting).toHaveLength(1)
  expect(called).toBe(8)
  const { notes } = await host.audit({ server: 'echo', kind: 'inbox' })
  expect(notes).toMatchObject([{ outcome: 'held', why: { code: 'CHAIN_TOO_DEEP', rule: 'inbox.chain.depth 8' } }])
})

test('an event whose server says what it came of is refused where it lies too deep, with the rule and the fix', async () => {
  const server = createServer({ name: 'echo', version: '1.0.0' })
  const echo = server.featureSet('echo', { description: 'Answers itself', uses: ['pushEvents'] })
  const answers: unknown[] = []
  echo.afterInference(
    async ({ inferenceId }) => {
      answers.push(await (await echo.push({ content: 'Something was said', origin: { inferenceId } })).answered)
    },
    { blocking: false },
  )
  const host = await hosted(server, { model: scripted('Well.', { again: true }), inbox: { chain: { depth: 3, pause: 0 } } })
  await echo.push({ content: 'It begins' })
  await expect.poll(() => answers.at(-1)).toMatchObject({ accepted: false, reason: 'chain' })
  expect(answers).toHaveLength(3)
  expect(await host.conversation('inbox/echo').turns()).toHaveLength(3)
  const refused = async () => (await host.audit({ server: 'echo', outcome: 'refused' })).notes
  await expect
    .poll(refused, { timeout: 20_000 })
    .toMatchObject([{ kind: 'push', why: { code: 'CHAIN_TOO_DEEP', fix: expect.stringContaining('inbox.chain.depth') } }])
})
