import http from 'node:http'
import https from 'node:https'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { decoy, guard, publicServer } from '../../../test/transports/outbound-servers.ts'
import { OutboundError } from '../../core/outbound.ts'
import { createOutbound } from './outbound.ts'

async function failure(promise: Promise<unknown>): Promise<OutboundError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown instanceof OutboundError) return thrown
  throw new Error(`Expected an OutboundError, got ${thrown}`)
}

describe('a public address', () => {
  it('is answered for with a whole Response', async () => {
    const { url } = await publicServer((_, response) => response.writeHead(201, { 'x-mark': 'a' }).end('{"ok":true}'))
    const response = await guard()(`${url}a?b=c#d`)
    expect(response).toBeInstanceOf(Response)
    expect([response.status, response.headers.get('x-mark'), response.redirected]).toEqual([201, 'a', false])
    expect(response.url).toBe(`${url}a?b=c#d`)
    expect(await response.json()).toEqual({ ok: true })
  })

  it('is sent the method, headers and body, and neither cookies nor a wish for compression', async () => {
    const seen: unknown[] = []
    const { url } = await publicServer(async (request, response) => {
      const { method, headers } = request
      seen.push(method, headers['content-type'], headers['accept-encoding'], headers.connection, headers.cookie, headers.host)
      seen.push(Buffer.concat(await request.toArray()).toString())
      response.end()
    })
    await guard()(url, { method: 'post', body: new URLSearchParams({ a: 'b c' }) })
    const form = 'application/x-www-form-urlencoded;charset=UTF-8'
    expect(seen).toEqual(['POST', form, 'identity', 'close', undefined, new URL(url).host, 'a=b+c'])
  })

  it('is resolved once, so that a second answer of DNS cannot lead elsewhere', async () => {
    const { url } = await publicServer((_, response) => response.end('ok'))
    const answers = ['127.0.0.2', '127.0.0.1']
    const asked: string[] = []
    const resolve = async (name: string) => {
      asked.push(name)
      return [answers[asked.length - 1] ?? '127.0.0.1']
    }
    expect(await (await guard({ resolve })(url)).text()).toBe('ok')
    expect(asked).toEqual(['public.example'])
  })

  it('must prove its name by its certificate', async () => {
    const { url } = await publicServer((_, response) => response.end('ok'))
    const wrong = await failure(guard()(url.replace('public', 'third')))
    expect([wrong.kind, wrong.message]).toEqual(['failed', expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID')])
    const resolve = async () => ['127.0.0.2']
    const unknown = await failure(createOutbound({ resolve, allow: ['127.0.0.2'] })(url))
    expect(unknown.message).toMatch(/SELF_SIGNED/)
  })

  it('must prove it even where the environment says that it need not', async () => {
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    onTestFinished(() => {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
    })
    const { url } = await publicServer((_, response) => response.end('ok'))
    expect((await failure(guard()(url.replace('public', 'third')))).kind).toBe('failed')
  })

  it('is spoken to without the proxies of the environment', async () => {
    const trap = await decoy()
    const { url } = await publicServer((_, response) => response.end('ok'))
    // The same that NODE_USE_ENV_PROXY does at the start of a process.
    onTestFinished(http.setGlobalProxyFromEnv({ https_proxy: `http://127.0.0.1:${trap.port}` }))
    await new Promise(resolve => https.get(url).on('error', resolve))
    expect(trap.hits).toBe(1)
    expect(await (await guard()(url)).text()).toBe('ok')
    expect(trap.hits).toBe(1)
  })
})

describe('a redirect', () => {
  const inside = (port: number) => [
    `http://127.0.0.1:${port}/`,
    `https://127.0.0.1:${port}/`,
    `https://0x7f.1:${port}/`,
    `https://[::1]:${port}/`,
    `https://[::ffff:127.0.0.1]:${port}/`,
    `//localhost:${port}/`,
    `\\\\127.0.0.1:${port}\\`,
    `https://inside.test:${port}/`,
    `https://public.example@127.0.0.1:${port}/`,
    `http://public.example:${port}/`,
    'file:///etc/hosts',
    'https://',
  ]

  it('is refused when it leads inside, in any spelling, on any hop, and nothing knocks there', async () => {
    const trap = await decoy()
    const targets = inside(trap.port)
    const { url } = await publicServer((request, response) => {
      const [, hops, target] = /^\/(\d)\/(\d+)$/.exec(request.url ?? '') ?? []
      const location = hops === '0' ? targets[Number(target)] : `/${Number(hops) - 1}/${target}`
      response.writeHead(302, { location: location ?? '' }).end()
    })
    for (const hops of [0, 1, 2])
      for (const target of targets.keys()) {
        const error = await failure(guard()(`${url}${hops}/${target}`))
        expect([target, error.kind]).toEqual([target, 'refused'])
      }
    expect(trap.hits).toBe(0)
  })

  it('does not lead from another machine to this one even where this one may be asked', async () => {
    const trap = await decoy()
    const { url } = await publicServer((_, response) =>
      response.writeHead(307, { location: `https://127.0.0.1:${trap.port}/` }).end(),
    )
    expect((await failure(guard({ loopback: true })(url))).message).toContain('an address of this machine')
    expect(trap.hits).toBe(0)
  })

  it('is followed three times and no more', async () => {
    const { url } = await publicServer((request, response) => {
      const left = Number(request.url?.slice(1))
      if (left === 0) response.end('there')
      else response.writeHead(301, { location: `/${left - 1}` }).end()
    })
    const response = await guard()(`${url}3`)
    expect([await response.text(), response.url, response.redirected]).toEqual(['there', `${url}0`, true])
    expect((await failure(guard()(`${url}4`))).message).toContain('the limit is 3')
  })

  it('takes credentials along within one origin and to no other', async () => {
    const seen: unknown[] = []
    const { url, other } = await publicServer((request, response) => {
      seen.push([request.headers.host?.split('.')[0], request.headers.authorization, request.headers['x-api-key']])
      const location = request.url === '/' ? '/same' : request.url === '/same' ? `${other}end` : undefined
      response.writeHead(location === undefined ? 200 : 302, location === undefined ? {} : { location }).end()
    })
    await guard()(url, { headers: { authorization: 'Bearer t', 'x-api-key': 'k' } })
    expect(seen).toEqual([
      ['public', 'Bearer t', 'k'],
      ['public', 'Bearer t', 'k'],
      ['other', undefined, undefined],
    ])
  })

  it('is the answer itself where that is asked for, and an error where none is wanted', async () => {
    const { url } = await publicServer((_, response) => response.writeHead(302, { location: 'http://127.0.0.1/' }).end('x'))
    const response = await guard()(url, { redirect: 'manual', method: 'POST' })
    expect([response.status, response.headers.get('location'), response.url]).toEqual([302, 'http://127.0.0.1/', url])
    expect((await failure(guard()(url, { redirect: 'error' }))).message).toContain('redirects are disabled')
  })

  it('of a POST is refused, for its body was meant for another', async () => {
    const { url } = await publicServer((_, response) => response.writeHead(307, { location: '/next' }).end())
    expect((await failure(guard()(url, { method: 'POST', body: 'secret' }))).message).toContain('only GET and HEAD follow')
  })
})

describe('an answer', () => {
  it('of 64 KiB is taken, of one byte more is cut off, announced or not', async () => {
    const { url } = await publicServer((request, response) => {
      const body = Buffer.alloc(request.url === '/fits' ? 65_536 : 65_537)
      if (request.url === '/announced') response.writeHead(200, { 'content-length': `${body.byteLength}` })
      response.write(body)
      response.end()
    })
    expect((await (await guard()(`${url}fits`)).bytes()).byteLength).toBe(65_536)
    for (const path of ['announced', 'not'])
      expect(await failure(guard()(url + path))).toMatchObject({ kind: 'limit', message: expect.stringContaining('65536 bytes') })
  })

  it('without an end is cut off at the limit, and its connection is closed', async () => {
    const closed = Promise.withResolvers<void>()
    const { url } = await publicServer((_, response) => {
      const pour = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(1_024)));
      }
      response.on('drain', pour)
      response.on('close', closed.resolve)
      pour()
    })
    expect((await failure(guard()(url))).kind).toBe('limit')
    await closed.promise
  })

  it('that is compressed is refused before it is unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
    const { url } = await publicServer((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    expect((await failure(guard()(url))).message).toContain('compressed (gzip)')
  })

  it.each([
    ['never begins', () => {}],
    ['drips', drip],
  ] as const)('that %s is given up at the deadline', async (_, listener) => {
    const { url, sockets } = await publicServer((_request, response) => listener(response))
    expect((await failure(guard({ timeout: '300ms' })(url))).message).toContain('longer than 300 ms')
    await expect.poll(() => sockets.size).toBe(0)
  })

  it('has one deadline for all redirects together', async () => {
    const { url } = await publicServer((_, response) => {
      setTimeout(() => response.writeHead(302, { location: '/' }).end(), 150)
    })
    expect((await failure(guard({ timeout: '200ms' })(url))).kind).toBe('limit')
  })

  it('of DNS that does not come is given up as well', async () => {
    const error = await failure(guard({ timeout: '50ms', resolve: () => new Promise(() => {}) })('https://public.example/'))
    expect(error.kind).toBe('limit')
  })

  it('with a switch of protocols, or that breaks off, is a failure', async () => {
    const { url } = await publicServer((request, response) => {
      if (request.url === '/101')
        response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n')
      else if (request.url === '/half') response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf')
      else response.socket?.destroy()
    })
    for (const path of ['101', 'half', 'none']) expect((await failure(guard()(url + path))).kind).toBe('failed')
  })
})

describe('a caller', () => {
  it('who gives up hears the reason of the signal', async () => {
    const { url } = await publicServer(() => {})
    const stop = new AbortController()
    const waiting = guard()(url, { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(guard()(url, { signal: stop.signal })).rejects.toThrow('enough')
  })

  it.each([
    ['host', { headers: { host: 'other.example' } }],
    ['cookie', { headers: { cookie: 'a=b' } }],
    ['transfer-encoding', { headers: { 'transfer-encoding': 'chunked' } }],
    ['CONNECT', { method: 'CONNECT' }],
    ['a body', { body: 'x' }],
  ] as const)('may not set %s', async (word, request) => {
    const error = await failure(guard()('https://public.example/', request))
    expect([error.kind, error.message]).toEqual(['refused', expect.stringContaining(word)])
  })

  it('reads neither the query nor the credentials of a refused address in the error', async () => {
    for (const url of ['https://u:hush@a.example/x?token=hush', 'http://a.example/?hush#hush', 'hush', 'https://hush:99999/'])
      expect((await failure(guard()(url))).message).not.toContain('hush')
  })

  it('in development reaches this machine by http, by address and by name, and nothing else by it', async () => {
    const trap = await decoy()
    const outbound = guard({ loopback: true })
    const hosts = ['127.0.0.1', 'localhost', 'a.localhost', ...(trap.six ? ['[::1]'] : [])]
    for (const host of hosts) expect(await (await outbound(`http://${host}:${trap.port}/`)).text()).toBe('secret')
    expect(trap.hits).toBe(hosts.length)
    for (const host of ['inside.test', '0.0.0.0', '10.0.0.1', '[::ffff:127.0.0.1]', 'public.example'])
      expect((await failure(outbound(`http://${host}:${trap.port}/`))).kind).toBe('refused')
    expect((await failure(outbound(`https://inside.test:${trap.port}/`))).kind).toBe('refused')
    expect(trap.hits).toBe(hosts.length)
  })

  it('is told at once of a range that is none', () => {
    expect(() => createOutbound({ allow: ['10.0.0.0/33'] })).toThrow('is not a range of addresses')
  })
})

/** A byte at a time, for ever. */
function drip(response: { write(text: string): unknown; on(event: 'close', fn: () => void): unknown }): void {
  const timer = setInterval(() => response.write('.'), 20)
  response.on('close', () => clearInterval(timer))
}
