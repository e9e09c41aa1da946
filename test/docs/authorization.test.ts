import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RealIssuer, realIssuer } from '../auth/real-issuer.ts'
import { httpPeer, json, send } from '../spec/http.ts'
import { scratch, snippets, writeProgram } from './program.ts'

const page = 'docs/guide/authorization.md'

describe('the guide to authorization, run against a real authorization server', () => {
  let issuer: RealIssuer
  let child: ChildProcess
  let url = ''

  beforeAll(async () => {
    issuer = await realIssuer()
    const file = await writeProgram(page)
    child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      env: { ...process.env, ISSUER: issuer.url },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (child.stdout === null) throw new Error('The program has no output')
    const [line] = await once(createInterface(child.stdout), 'line')
    url = line
  })
  afterAll(async () => {
    child.kill()
    await issuer.close()
    await rm(scratch, { recursive: true, force: true })
  })

  const call = async (name: string, scope: string) => {
    const authorization = `Bearer ${await issuer.token(url, scope)}`
    const peer = await httpPeer(url, '2026-07-28', {}, { authorization })
    return peer.ask('tools/call', { name })
  }

  it('takes fewer than 20 lines', async () => {
    const [program = ''] = snippets(await readFile(page, 'utf8'))
    expect(program.trimEnd().split('\n').length).toBeLessThan(20)
  })

  it('leads whoever brings no token to the authorization server', async () => {
    const refused = await send(url, { headers: json, body: {} })
    expect(refused.status).toBe(401)
    const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(String(refused.headers['www-authenticate'])) ?? []
    const { frame } = await send(metadata, { method: 'GET', headers: {} })
    expect(frame).toMatchObject({ resource: url, authorization_servers: [issuer.url], scopes_supported: ['tickets:read'] })
  })

  it('lets in a token that the server issued for it, with the name that the server gave', async () => {
    const answer = await call('list_tickets', 'tickets:read')
    expect(answer.frame).toMatchObject({ result: { content: [{ text: 'The tickets of robot' }] } })
  })

  it('refuses one that was issued for another server', async () => {
    const authorization = `Bearer ${await issuer.token('https://other.example.com/mcp', 'tickets:read')}`
    expect((await send(url, { headers: { ...json, authorization }, body: {} })).status).toBe(401)
  })

  it('steps up: 403 with the scopes to get, and a token that has them gets through', async () => {
    const refused = await call('close_ticket', 'tickets:read')
    const [, scope = ''] = /scope="([^"]+)"/.exec(String(refused.headers['www-authenticate'])) ?? []
    expect([refused.status, scope]).toEqual([403, 'tickets:read tickets:write'])
    expect((await call('close_ticket', scope)).frame).toMatchObject({ result: { content: [{ text: 'Closed' }] } })
  })
})
