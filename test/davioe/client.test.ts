import { describe, expect, onTestFinished, test } from 'vitest'
import { type Client, type ConnectOptions, classify, connect, saga } from '../../src/client/index.ts'
import { isRecord, type Params } from '../../src/jsonrpc/message.ts'
import { openStore } from '../../src/stores/index.ts'
import { bareServer, type CannedPeer, cannedPeer } from './peer.ts'

async function open(options: ConnectOptions = { profile: 'davioe' }): Promise<{ mcp: Client; peer: CannedPeer }> {
  const peer = cannedPeer()
  const mcp = await connect(peer.connection, { retry: false, ...options })
  onTestFinished(() => mcp.close())
  return { mcp, peer }
}

const names = async (mcp: Client): Promise<string[]> => {
  const found: string[] = []
  for await (const { name } of mcp.tools()) found.push(name)
  return found
}
const refusal = (work: Promise<unknown>) => work.then(() => undefined, classify)
const lastParams = ({ heard }: CannedPeer): Params => heard.at(-1)?.['params'] as Params

describe('without the profile a server of that implementation is refused, with the way out', () => {
  test('its list of tools', async () => {
    const { mcp } = await open({})
    expect(await refusal(names(mcp))).toMatchObject({ code: 'UNSUPPORTED', suggestion: expect.stringContaining("'davioe'") })
  })

  test('its results', async () => {
    const { mcp } = await open({})
    const call = mcp.callTool('search_tickets', { status: 'open' })
    expect(await refusal(call)).toMatchObject({ code: 'UNSUPPORTED', suggestion: expect.stringContaining("'davioe'") })
  })

  test('its lack of a handshake', async () => {
    const { url } = await bareServer('JIRA')
    const problem = await refusal(connect(url))
    expect(problem).toMatchObject({ code: 'UNSUPPORTED', message: expect.stringContaining('initialize') })
  })
})

describe('with the profile', () => {
  test('its tools are listed as tools', async () => {
    const { mcp } = await open()
    expect(await names(mcp)).toEqual(['search_tickets', 'create_ticket', 'delete_ticket'])
    expect([mcp.server?.name, mcp.revision]).toEqual(['canned-tracker', '2025-06-18'])
  })

  test('a result has content, and its state goes back to it', async () => {
    const { mcp, peer } = await open()
    const found = await mcp.callTool('search_tickets', { status: 'open' })
    expect(found).toMatchObject({ structured: { total_count: 1 }, text: '{"total_count":1}', isError: false })
    await mcp.callTool('search_tickets')
    const token = String(lastParams(peer)['session_state'])
    expect(JSON.parse(atob(token))).toEqual({ calls: 1, last_tool: 'search_tickets' })
  })

  test('a key goes beside the arguments, where it is read, and a repetition is one', async () => {
    const { mcp, peer } = await open()
    const first = await mcp.callTool('create_ticket', { title: 'A' }, { idempotencyKey: 'k1' })
    const again = await mcp.callTool('create_ticket', { title: 'A' }, { idempotencyKey: 'k1' })
    expect([again.structured, peer.tickets.size]).toEqual([first.structured, 2])
    expect(again.meta?.['dev.vivarium/idempotency']).toMatchObject({ was_replay: true })
    expect(lastParams(peer)).toMatchObject({ idempotency_key: 'k1', _meta: { idempotency_key: 'k1' } })
    await mcp.callTool('create_ticket', { title: 'B' })
    expect(lastParams(peer)['idempotency_key']).toMatch(/^[\w-]{20,}$/)
  })

  test('a transaction is begun, and taken back, by its tools', async () => {
    const { mcp, peer } = await open()
    const tx = await mcp.transaction({ id: 'tx-1' })
    expect(await refusal(mcp.transaction({ id: 'tx-1' }))).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    for (const title of ['s1', 's2']) expect((await tx.callTool('create_ticket', { title })).isError).toBe(false)
    expect(peer.tickets.size).toBe(3)
    const report = await tx.rollback('test')
    expect(report).toMatchObject({ id: 'tx-1', status: 'rolled_back' })
    expect(report.steps.map(({ id, status }) => [id, status])).toEqual([
      ['create-P-2', 'compensated'],
      ['create-P-3', 'compensated'],
    ])
    expect(peer.tickets.size).toBe(1)
    expect(await refusal(tx.rollback())).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await refusal(mcp.transactionStatus('tx-1'))).toMatchObject({ code: 'UNSUPPORTED' })
  })

  test('a commit counts', async () => {
    const { mcp, peer } = await open()
    const tx = await mcp.transaction()
    await tx.callTool('create_ticket', { title: 's1' })
    expect((await tx.commit()).status).toBe('committed')
    expect(peer.tickets.size).toBe(2)
  })

  test('a missing right is a problem that names it, and can be asked for beforehand', async () => {
    const { mcp } = await open({ profile: 'davioe', onConfirm: () => true })
    const permission = await mcp.permissions.check('delete_ticket')
    expect(permission).toMatchObject({ allowed: false, missing: ['delete:tickets'], elevationUrl: 'https://example.com/elevate' })
    const refused = await mcp.callTool('delete_ticket', { ticket_id: 'P-1' })
    expect(refused.problem).toMatchObject({ code: 'SCOPE_INSUFFICIENT', details: { missing_scopes: ['delete:tickets'] } })
    expect(await refusal(mcp.permissions.negotiate(['delete:tickets']))).toMatchObject({ code: 'SCOPE_INSUFFICIENT' })
  })

  test('E6-1: nothing that needs a yes is sent before the user gave it, and the user is asked once', async () => {
    const asked: string[] = []
    let yes = false
    const { mcp, peer } = await open({ profile: 'davioe', onConfirm: ({ message }) => asked.push(message) > 0 && yes })
    peer.scopes.add('delete:tickets')
    expect(await refusal(mcp.callTool('delete_ticket', { ticket_id: 'P-1' }))).toMatchObject({ code: 'CONFIRMATION_DECLINED' })
    expect(peer.heard.some(({ method }) => method === 'tools/call')).toBe(false)
    yes = true
    const done = await mcp.callTool('delete_ticket', { ticket_id: 'P-1' })
    expect([done.structured, peer.tickets.size]).toEqual([{ deleted: true, ticket_id: 'P-1' }, 0])
    expect(lastParams(peer)).toMatchObject({ user_confirmed: true })
    expect(lastParams(peer)).not.toHaveProperty('confirmation_token')
    const text = 'canned-tracker: delete_ticket. The ticket P-1 and all that hangs on it will be gone. Proceed?'
    expect(asked).toEqual([text, text])
    const gone = await mcp.callTool('delete_ticket', { ticket_id: 'P-1' })
    expect(gone).toMatchObject({ isError: true, problem: { code: 'RESOURCE_NOT_FOUND' } })
  })

  test('without anybody who could be asked the call is refused here', async () => {
    const { mcp } = await open()
    const call = mcp.callTool('delete_ticket', { ticket_id: 'P-1' })
    expect(await refusal(call)).toMatchObject({ code: 'CONFIRMATION_REQUIRED' })
  })

  test('what it does not know is not sent, and a refused ping is a sign of life', async () => {
    const { mcp, peer } = await open()
    await mcp.ping()
    expect(peer.heard.map(({ method }) => method)).toEqual(['initialize', 'notifications/initialized', 'ping'])
  })
})

describe('E5-20: a saga over servers that answer calls and nothing else', () => {
  const undo = {
    tool: 'delete_ticket',
    arguments: ({ result }: { result: unknown }) =>
      isRecord(result) && isRecord(result['ticket']) ? { ticket_id: result['ticket']['id'] } : undefined,
  }

  async function start() {
    const servers = {
      jira: await bareServer('JIRA'),
      confluence: await bareServer('CONF'),
      slack: await bareServer('SLACK', []),
    }
    const open = (url: string) => connect(url, { profile: 'davioe', retry: false })
    const clients = {
      jira: await open(servers.jira.url),
      confluence: await open(servers.confluence.url),
      slack: await open(servers.slack.url),
    }
    const store = await openStore('memory:')
    onTestFinished(async () => {
      for (const client of Object.values(clients)) await client.close()
      await store.close()
    })
    const release = await saga({ store, clients })
    await release.step('jira', 'create_ticket', { title: 'Deploy' }, { undo })
    await release.step('confluence', 'create_ticket', { title: 'Document' }, { undo })
    const posted = release.step('slack', 'post_message', { channel: '#releases', text: 'Deployed' })
    expect(await refusal(posted)).toMatchObject({ code: 'UNSUPPORTED' })
    return { ...servers, release }
  }

  test('takes all back, the last one first, when one of them knows no such call', async () => {
    const { release, jira, confluence } = await start()
    expect([jira.tickets.size, confluence.tickets.size]).toEqual([1, 1])
    const report = await release.rollback('slack said no')
    expect([report.status, jira.tickets.size, confluence.tickets.size]).toEqual(['rolled_back', 0, 0])
    expect(report.steps.map(({ server, status }) => `${server} ${status}`)).toEqual([
      'jira compensated',
      'confluence compensated',
      'slack failed',
    ])
    const { params } = confluence.heard.at(-1) as { params: Params }
    expect(params).toMatchObject({ name: 'delete_ticket', arguments: { ticket_id: 'CONF-1' } })
    expect((params['_meta'] as Params)['idempotency_key']).toMatch(/^compensate-/)
    expect(jira.heard.map(({ method }) => method)).toEqual(['initialize', 'tools/call', 'tools/call'])
  })

  test('goes on when one of them is gone, and says what is left', async () => {
    const { release, jira, confluence } = await start()
    await jira.close()
    const report = await release.rollback('slack said no')
    expect([report.status, confluence.tickets.size]).toEqual(['partially_rolled_back', 0])
    expect(report.steps.map(({ server, status }) => `${server} ${status}`)).toEqual([
      'jira compensation_failed',
      'confluence compensated',
      'slack failed',
    ])
  })
})
