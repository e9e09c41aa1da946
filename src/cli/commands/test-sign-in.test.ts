import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { type Browser, fileStorage, oauth } from '../../auth/client/index.ts'
import { connect } from '../../client/index.ts'
import { openAuthority } from '../../conformance/clients/auth/authority.ts'
import { createServer } from '../../server/index.ts'
import { nodeHandler } from '../../server/node-handler.ts'
import type { Io } from '../io.ts'
import { tokenFor } from './test.ts'

const secret = 'a secret for the tokens of a test, long enough'

function ioIn(folder: string): Io {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, VIVARIUM_TOKEN_SECRET: secret }
  return { input, output, errors, env, interactive: false, colour: false, signal: new AbortController().signal }
}

/** A server that takes the tokens of its authorization server, and no others. */
async function guarded(): Promise<string> {
  const authority = await openAuthority(() => 0)
  const server = createServer({ name: 'guarded', version: '1.0.0' })
  const handle = nodeHandler(server)
  let origin = ''
  const http = createHttp((request, response) => {
    const metadata = '/.well-known/oauth-protected-resource/mcp'
    if (request.url === metadata) {
      const told = { resource: `${origin}/mcp`, authorization_servers: [authority.issuer] }
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(told))
    }
    const token = request.headers.authorization?.slice('Bearer '.length) ?? ''
    if (authority.scopeOf(token) !== undefined) return void handle(request, response)
    request.resume()
    response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${origin}${metadata}"` }).end()
  })
  onTestFinished(async () => {
    http.closeAllConnections()
    http.close()
    await server.close()
    await authority.close()
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  origin = `http://127.0.0.1:${(http.address() as { port: number }).port}`
  return `${origin}/mcp`
}

/** The page answers at once. */
const browser: Browser = {
  redirectUri: 'http://127.0.0.1:7421/callback',
  async authorize(url) {
    const { headers } = await fetch(url, { redirect: 'manual' })
    return new URL(headers.get('location') ?? '', url)
  },
}

test('a sign-in that was made before lets the kit in; without one there is no token, and nobody is asked', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-sign-in-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const url = await guarded()
  expect(await tokenFor(url, {}, ioIn(folder))).toBeUndefined()
  const storage = fileStorage(join(folder, 'vivarium', 'tokens'), { secret })
  const client = await connect(url, { auth: oauth({ browser, storage }) })
  await client.close()
  expect(await tokenFor(url, {}, ioIn(folder))).toBe('Bearer token-1')
})
