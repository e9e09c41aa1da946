import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connectInMemory, fakeClock } from 'vivarium/testing'
import { command, liveHost, temporaryFolder, wires } from '../../test/examples/live-host.ts'
import { openWebhooks, type WebhookOptions } from './webhook.ts'

const secrets = { github: 'g-secret', gitlab: 'l-secret', stripe: 's-secret' }
const clock = fakeClock(1_790_000_000_000)
const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')

async function opened(options: Partial<WebhookOptions> = {}) {
  const webhooks = await openWebhooks({ file: join(temporaryFolder(), 'webhook.db'), port: 0, secrets, clock, ...options })
  let closing: PromiseLike<void> | undefined
  const close = async () => {
    closing ??= webhooks[Symbol.asyncDispose]()
    await closing
  }
  onTestFinished(close)
  const post = (path: string, body: string, headers: Record<string, string>) =>
    fetch(`${webhooks.url}/${path}`, { method: 'POST', body, headers })
  return { ...webhooks, post, close }
}

type Post = Awaited<ReturnType<typeof opened>>['post']

const pushed = JSON.stringify({ ref: 'refs/heads/main', repository: { full_name: 'ada/tea' }, sender: { login: 'ada' } })

const github = (post: Post, id: string, body = pushed, secret = secrets.github) =>
  post('github', body, {
    'x-github-delivery': id,
    'x-github-event': 'push',
    'x-hub-signature-256': `sha256=${hmac(secret, body)}`,
  })

const gitlab = (post: Post, id: string, token = secrets.gitlab) =>
  post('gitlab', JSON.stringify({ object_kind: 'push', project: { path_with_namespace: 'a/b' } }), {
    'x-gitlab-token': token,
    'idempotency-key': id,
    'x-gitlab-event': 'Push Hook',
  })

const stripe = (post: Post, id: string, at = clock.now(), secret = secrets.stripe, signed?: string) => {
  const body = JSON.stringify({ id, type: 'invoice.paid', data: { object: { object: 'invoice', id: 'in_1', amount: 5 } } })
  const time = Math.floor(at / 1000)
  return post('stripe', body, {
    'stripe-signature': `t=${time},v1=${'0'.repeat(64)},v1=${signed ?? hmac(secret, `${time}.${body}`)}`,
  })
}

describe.each(wires)('a live host on %s', revision => {
  test('is woken by webhooks of all three senders, under ids that stay the same', async () => {
    const { server, post } = await opened()
    const host = await liveHost(server, { revision })
    for (const send of [github, gitlab, stripe]) expect((await send(post, 'one-1')).status).toBe(200)
    await expect.poll(() => host.pushed.length).toBe(3)
    const found = new Map(host.pushed.map(event => [event.eventId, event]))
    expect(found.get('github:one-1')).toMatchObject({
      featureSet: 'webhook.events',
      origin: { source: 'github', place: 'ada/tea' },
      tags: ['webhook', 'github', 'github.push'],
      content: [{ type: 'text', text: expect.stringContaining('github says push of ada/tea\nref: refs/heads/main') }],
    })
    expect([...found.keys()].sort()).toEqual(['github:one-1', 'gitlab:one-1', 'stripe:one-1'])
    expect((await host.mcp.callTool('read_delivery', { eventId: 'github:one-1' })).text).toBe(pushed)
    expect((await host.mcp.callTool('list_deliveries', { limit: 1 })).structured).toEqual({
      deliveries: [{ eventId: 'stripe:one-1', event: 'invoice.paid', at: new Date(clock.now()).toISOString() }],
    })
  })
})

test('what is not signed rightly is refused, whoever it says it is from', async () => {
  const { server, post, url } = await opened({ secrets: { ...secrets } })
  const { mcp } = await liveHost(server)
  const attempts = [
    github(post, 'a', pushed, 'wrong'),
    post('github', pushed, { 'x-github-delivery': 'b' }),
    post('github', `${pushed} `, { 'x-github-delivery': 'c', 'x-hub-signature-256': `sha256=${hmac(secrets.github, pushed)}` }),
    gitlab(post, 'd', 'wrong'),
    gitlab(post, 'e', ''),
    stripe(post, 'f', clock.now(), 'wrong'),
    stripe(post, 'g', clock.now(), secrets.stripe, 'zz'),
    post('stripe', '{"id":"h"}', { 'stripe-signature': 't=,v1=' }),
  ]
  for (const response of await Promise.all(attempts)) expect(response.status).toBe(401)
  expect((await fetch(`${url}/github`)).status).toBe(405)
  expect((await post('elsewhere', '{}', {})).status).toBe(404)
  expect((await github(post, 'not a name!')).status).toBe(400)
  expect((await github(post, 'i', '[1]')).status).toBe(400)
  expect((await mcp.callTool('list_deliveries')).structured).toEqual({ deliveries: [] })
})

test('a port that is taken is named, with what to do about it', async () => {
  const { url } = await opened()
  await expect(opened({ port: Number(new URL(url).port) })).rejects.toThrow(
    /Port \d+ is already in use. Set another one \(WEBHOOK_PORT\)/,
  )
})

test('a sender without a secret is not listened to, and a body without end is not read', async () => {
  const { post } = await opened({ secrets: { github: 'g-secret' } })
  expect((await stripe(post, 'a')).status).toBe(404)
  expect((await github(post, 'b', JSON.stringify({ big: 'x'.repeat(2 ** 20) }))).status).toBe(413)
})

test('a delivery that comes again is acknowledged and told once: by its id, by what was signed, also amid the first', async () => {
  const { server, post } = await opened()
  const host = await liveHost(server)
  const both = await Promise.all([github(post, 'a'), github(post, 'a')])
  const answers = await Promise.all([...both, await github(post, 'a'), await github(post, 'other-id')].map(each => each.json()))
  expect(answers.filter(answer => !('duplicate' in answer))).toHaveLength(1)
  expect(await (await github(post, 'b', '{"n":2}')).json()).toEqual({ received: true })
  await expect.poll(() => host.pushed.map(({ eventId }) => eventId)).toEqual(['github:a', 'github:b'])
})

test('one that was signed more than five minutes ago, or ahead, is refused', async () => {
  const { post } = await opened()
  expect((await stripe(post, 'a', clock.now() - 299_000)).status).toBe(200)
  expect((await stripe(post, 'b', clock.now() - 302_000)).status).toBe(401)
  expect((await stripe(post, 'c', clock.now() + 302_000)).status).toBe(401)
})

test('what came in while no host was there waits for one, and is known after a restart', async () => {
  const file = join(temporaryFolder(), 'webhook.db')
  const first = await opened({ file })
  expect((await github(first.post, 'a')).status).toBe(200)
  const plain = await connectInMemory(first.server)
  expect(JSON.stringify((await plain.readResource('live://events/pending')).contents)).toContain('github:a')
  expect(plain.instructions).toContain(`${first.url}/github`)
  await plain.close()
  await first.close()
  const second = await opened({ file })
  const host = await liveHost(second.server)
  expect(await (await github(second.post, 'a')).json()).toEqual({ received: true, duplicate: true })
  await expect.poll(() => host.pushed).toMatchObject([{ eventId: 'github:a' }])
})

test('a store that cannot keep it makes the sender try again later', async () => {
  const { server, post } = await opened()
  await server.close()
  const response = await github(post, 'a')
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '30'])
})

test('as a process of its own it says where it listens, and ends with its host', async () => {
  const env = { WEBHOOK_PORT: '0', WEBHOOK_FILE: join(temporaryFolder(), 'w.db'), WEBHOOK_GITHUB_SECRET: secrets.github }
  const host = await liveHost(command('webhook', [], env))
  const [url = ''] = /http:\S+(?=\/github)/.exec(host.mcp.instructions ?? '') ?? []
  const post: Post = (path, body, headers) => fetch(`${url}/${path}`, { method: 'POST', body, headers })
  expect((await github(post, 'p-1')).status).toBe(200)
  await expect.poll(() => host.pushed).toMatchObject([{ eventId: 'github:p-1' }])
  await host.mcp.close()
  await expect(github(post, 'p-2')).rejects.toThrow()
})
