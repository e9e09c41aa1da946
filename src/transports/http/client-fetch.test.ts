import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { cleanUp, failure, hear, json, request, result, serve } from '../../../test/transports/http-test-server.ts'
import { httpClientConnection as fetchClientConnection } from './client.web.ts'

afterEach(cleanUp)

/** Every module that is loaded along with a file, by address. */
function loaded(file: URL, known = new Map<string, string>()): Map<string, string> {
  if (known.has(file.href)) return known
  const source = readFileSync(file, 'utf8')
  known.set(file.href, source)
  for (const [, specifier = ''] of source.matchAll(/^(?:import|export) (?!type )[^'\n]*from '([^']+)'/gm)) {
    if (specifier.startsWith('.')) loaded(new URL(specifier, file), known)
    else known.set(specifier, '')
  }
  return known
}

describe('the client over fetch', () => {
  it('loads nothing of Node and no package', () => {
    const names = [...loaded(new URL('./client.web.ts', import.meta.url)).keys()]
    expect(names.length).toBeGreaterThan(10)
    expect(names.filter(name => !name.startsWith('file:'))).toEqual([])
  })

  it('uses the global fetch if given no other', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id)))
    const connection = fetchClientConnection(server.url)
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1 })
    expect(heard.frames).toHaveLength(1)
  })

  it('leaves compression to the platform, and counts what comes out of it', async () => {
    const server = await serve((seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      response.end(gzipSync(result(seen.id, 'x'.repeat(seen.id === 1 ? 100 : 1024 * 1024))))
    })
    const limits = { frameBytes: 64 * 1024, depth: 128, elements: 1000, names: 1000, batch: 10 }
    const connection = fetchClientConnection(server.url, { limits })
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1 })
    expect(heard.frames[0]?.text).toBe(result(1, 'x'.repeat(100)))
    expect((await failure(connection.send(request(2), { id: 2 }))).kind).toBe('too-large')
  })

  it('takes a fetch that throws at once as a failure of the call alone', async () => {
    const connection = fetchClientConnection('http://127.0.0.1:1/', {
      fetch: () => {
        throw new TypeError('not today')
      },
    })
    await hear(connection)
    const error = await failure(connection.send(request(1), { id: 1 }))
    expect(error.kind).toBe('lost')
    expect(error.message).toContain('not today')
  })
})
