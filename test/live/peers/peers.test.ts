/** Live servers that others wrote, as they were seen on the wire, played against our host. */
import { expect, test } from 'vitest'
import type { Client } from '../../../src/client/client.ts'
import type { LiveHandlers } from '../../../src/features/live/client-api.ts'
import { attach, serve } from '../raw/host.ts'
import { type Carrier, rawServer } from '../raw/raw-server.ts'
import { silence } from '../raw/script.ts'
import { Player, readSteps } from './player.ts'

const peers: readonly (readonly [peer: string, carrier: Carrier])[] = [
  ['heartbeat', 'stdio'],
  ['mail', 'stdio'],
  ['portal', 'stdio'],
  ['discord', 'stdio'],
  ['editor', 'websocket'],
]

/** What their operators allow these beyond what they declare: both push under sets that declare nothing but tools. */
const select: LiveHandlers['select'] = declared => ({
  enabled: [...declared.keys()],
  disabled: [],
  canEnable: () => true,
  uses: { heartbeat: ['pushEvents'], mail: ['pushEvents'] },
})

async function listed(client: Client): Promise<void> {
  for await (const _ of client.tools());
}

/** Begins what a step says; awaited when the next one is due. */
function begin(client: Client, what: string, rest: string): Promise<unknown> {
  const [first = '', second = ''] = rest.split(' ')
  if (what === 'tools') return listed(client)
  if (what === 'call') return client.callTool(first, {}, second === '' ? {} : { live: { checkpoint: second } })
  if (what === 'rollback') return client.live?.rollback(first, second) ?? Promise.resolve()
  if (what === 'publish') return client.live?.publish(rest, [{ type: 'text', text: 'hello' }]) ?? Promise.resolve()
  return Promise.resolve()
}

test.each(peers)('%s is lived with as it was recorded', async (peer, carrier) => {
  // The player answers everything itself.
  const raw = await serve(carrier, {})
  for (const method of ['initialize', 'tools/list', 'featureSets/update']) raw.script.on(method, () => silence)
  for (const method of ['tools/call', 'state/rollback', 'channels/publish']) raw.script.on(method, () => silence)
  const player = new Player(raw, readSteps(peer))
  const connecting = attach(raw, { handlers: { select } })
  let under: Promise<unknown> = Promise.resolve()
  for (;;) {
    const what = await player.next()
    if (what === undefined) break
    const [verb = '', ...words] = what.split(' ')
    const rest = words.join(' ')
    const { client, pushed } = await connecting
    const outcome = ['connected', 'pushed'].includes(verb) ? undefined : await under.catch((error: unknown) => error)
    if (verb === 'connected') expect(client.live?.dialect.label).toBe(rest)
    else if (verb === 'pushed') expect(pushed.map(({ eventId }) => eventId)).toContain(rest)
    else if (verb === 'left') expect(outcome).toMatchObject({ live: { checkpoint: rest } })
    else if (verb === 'rolled') expect(outcome).toMatchObject({ success: words[0] === 'true', checkpoint: words[1] })
    else if (verb === 'refused') expect(outcome).toMatchObject({ message: expect.stringContaining(rest) })
    else under = begin(client, verb, rest)
    under.catch(() => {})
  }
  await under.catch(() => {})
  expect(player.rest).toEqual([])
})

test('A18: a server that dies of anything but a handshake is opened all the same', async () => {
  const raw = await rawServer('stdio', {
    mcpl: { version: '0.4', featureSets: [] },
    answers: {
      'server/discover': () => {
        throw new Error('heartbeat would be gone by now')
      },
    },
  })
  const { client } = await attach(raw, { connecting: { revisions: ['2026-07-28', '2024-11-05'] } })
  expect([client.revision, raw.script.of('server/discover')]).toEqual(['2024-11-05', []])
  await client.close()
  await raw.close()
})
