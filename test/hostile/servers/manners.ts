/** Servers with bad manners over HTTP: where they send us, what they call their answers, and how they end them. */
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { type Attack, list, must, type Peer, pause } from './attack.ts'
import { type Call, decoy, events, httpPeer, json, pour, type Script, said, socketPeer } from './http-peer.ts'

/** A server that tries to send the client to a decoy. */
async function luring(answer: (call: Call, url: string) => void): Promise<Peer> {
  const lure = await decoy()
  const peer = await httpPeer({ 'tools/call': call => answer(call, lure.url) })
  return {
    url: peer.url,
    complaint: () => (lure.hits() === 0 ? undefined : `the decoy was reached ${lure.hits()} times`),
    close: async () => void (await Promise.all([peer.close(), lure.close()])),
  }
}

const hostileUrls = [
  'file:///etc/passwd',
  'javascript:alert(1)',
  'data:application/json,{}',
  'http://169.254.169.254/latest/meta-data/',
  'http://[::1]:1/',
  '--upload-pack=touch /tmp/marker',
  '$(touch /tmp/marker)',
  '`touch /tmp/marker`',
  `https://${'a'.repeat(5_000)}/`,
]

/** Speaks the wire with sessions. */
function sessionPeer(more: Script): Script {
  return {
    initialize: ({ answer, response }) => {
      response.setHeader('mcp-session-id', 's')
      answer(hello)
    },
    'notifications/initialized': ({ response }) => void response.writeHead(202).end(),
    ...more,
  }
}

const hello = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'hostile', version: '1' } }

export const mannersAttacks: readonly Attack[] = [
  {
    key: 'H6',
    name: 'a redirect to another origin is not followed',
    serve: () => luring(({ response }, url) => response.writeHead(307, { location: url }).end()),
    async act(host) {
      const mcp = await host.connect()
      const kind = await host.refused(mcp.callTool('t'), 'status')
      await host.fine(mcp)
      return kind
    },
  },
  {
    key: 'H8',
    name: 'a challenge that names a loopback address of metadata makes nobody go there',
    serve: () =>
      luring(({ response }, url) => {
        const challenge = `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource", authorization_uri="${url}"`
        response.writeHead(401, { 'www-authenticate': challenge, link: `<${url}>; rel="oauth"` }).end()
      }),
    async act(host) {
      const mcp = await host.connect()
      const kind = await host.refused(mcp.callTool('t'), 'status')
      await pause(200)
      await host.fine(mcp)
      return kind
    },
  },
  {
    key: 'H20',
    name: 'a challenge that names a file, a script, a command or a giant is passed on as text and acted on by nobody',
    serve: () =>
      httpPeer({
        'tools/call': ({ params, response }) => {
          const url = hostileUrls[Number(params['name'])] ?? ''
          response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${url}"`, 'content-type': 'application/json' })
          response.end(JSON.stringify({ error: 'invalid_token', error_uri: url, error_description: `\u001b[2J${url}` }))
        },
      }),
    async act(host) {
      const mcp = await host.connect()
      for (const index of hostileUrls.keys()) await host.refused(mcp.callTool(`${index}`), 'status')
      await host.fine(mcp)
      return `${hostileUrls.length} refused`
    },
  },
  {
    key: 'H21',
    name: 'an answer in another content type, an HTML page or none at all is no answer',
    serve: () => {
      const types = [
        'text/html',
        'text/plain',
        'application/jsonp',
        'application/json-seq',
        'text/event-stream2',
        '',
        'application/octet-stream',
      ]
      return httpPeer({
        'tools/call': ({ id, params, response }) => {
          const type = types[Number(params['name'])] ?? ''
          response.writeHead(200, type === '' ? {} : { 'content-type': type })
          response.end(
            type === 'text/html'
              ? `<!doctype html>${'<p>'.repeat(1_000_000)}`
              : JSON.stringify({ jsonrpc: '2.0', id, result: said('x') }),
          )
        },
      })
    },
    async act(host) {
      const mcp = await host.connect()
      for (const index of list(7, at => at)) await host.refused(mcp.callTool(`${index}`), 'protocol')
      await host.fine(mcp)
      return '7 refused'
    },
  },
  {
    key: 'H22',
    name: 'a compressed answer that would grow to 256 MiB is refused unopened',
    serve: () => {
      const zeros = Buffer.alloc(256 * 1024 * 1024)
      const bombs = new Map([
        ['gzip', gzipSync(zeros, { level: 1 })],
        ['br', brotliCompressSync(zeros.subarray(0, 64 * 1024 * 1024), { params: { 1: 1 } })],
        ['x-gzip', gzipSync(zeros.subarray(0, 1024))],
      ])
      return httpPeer({
        'tools/call': ({ params, response }) => {
          const encoding = String(params['name'])
          response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding }).end(bombs.get(encoding))
        },
      })
    },
    async act(host) {
      const mcp = await host.connect()
      for (const encoding of ['gzip', 'br', 'x-gzip']) await host.refused(mcp.callTool(encoding), 'protocol')
      const fetching = await host.connect({ fetch })
      const kind = await host.refused(fetching.callTool('gzip'), 'too-large', 'protocol')
      await host.fine(mcp)
      return kind
    },
  },
  ...[0, 1e9, '9'.repeat(400)].map(
    (retry, index) =>
      ({
        key: `H${23 + index}`,
        name: `a stream to be opened again after ${String(retry).slice(0, 10)} ms is opened neither without pause nor never`,
        serve: () =>
          httpPeer(
            sessionPeer({
              GET: ({ response }) => events(response).end(`id: 1\nretry: ${retry}\ndata:\n\n`),
              'tools/call': ({ response }) => events(response).end(`id: 2\nretry: ${retry}\ndata:\n\n`),
              DELETE: ({ response }) => void response.end(),
            }),
            ({ asked }) => {
              const opened = asked.filter(method => method === 'GET').length
              return opened <= (index === 0 ? 100 : 6) ? undefined : `the streams were opened ${opened} times in two seconds`
            },
          ),
        async act(host) {
          const mcp = await host.connect({ revisions: ['2025-11-25'] })
          const kind = await host.refused(mcp.callTool('t', {}, { timeout: '2s' }), 'timeout')
          await host.fine(mcp)
          return kind
        },
      }) satisfies Attack,
  ),
  {
    key: 'H26',
    name: 'headers without end, or one of a megabyte, fail the call alone',
    serve: () =>
      socketPeer((socket, request) => {
        if (request.includes('"fine"')) return void socket.end(rawAnswer(request, said('fine')))
        if (request.includes('server/discover')) return void socket.end(rawAnswer(request, discovery))
        socket.write('HTTP/1.1 200 OK\r\n')
        if (request.includes('"one"')) socket.write(`x: ${'y'.repeat(1024 * 1024)}\r\n`)
        const more = (): void => {
          while (!socket.destroyed) if (!socket.write(`x: ${'y'.repeat(1000)}\r\n`)) return void socket.once('drain', more)
        }
        more()
      }),
    async act(host) {
      const mcp = await host.connect()
      await host.refused(mcp.callTool('one'), 'too-large')
      const kind = await host.refused(mcp.callTool('many'), 'too-large')
      await host.fine(mcp)
      return kind
    },
  },
  {
    key: 'H27',
    name: 'redirects without end, to a file and to a script are not followed',
    serve: () => {
      const targets = ['/mcp', 'file:///etc/passwd', 'javascript:alert(1)', '//evil.example/', `/${'a'.repeat(10_000)}`]
      return httpPeer(
        { 'tools/call': ({ params, response }) => response.writeHead(308, { location: targets[Number(params['name'])] }).end() },
        ({ asked }) => (asked.filter(method => method === 'tools/call').length === 6 ? undefined : `asked ${asked.join()}`),
      )
    },
    async act(host) {
      const mcp = await host.connect()
      for (const index of list(5, at => at)) await host.refused(mcp.callTool(`${index}`), 'status')
      await host.fine(mcp)
      return '5 refused'
    },
  },
  {
    key: 'H28',
    name: 'a session id with control characters, of a megabyte or of another alphabet is not taken',
    serve: () =>
      socketPeer((socket, request) => {
        const name = /x-case: (\d)/.exec(request)?.[1] ?? '0'
        const ids = ['a\u0001b', 'a b', 'é', 'x'.repeat(5_000), 'a\tb', 'a\u007f']
        socket.end(rawAnswer(request, hello, `mcp-session-id: ${ids[Number(name)]}\r\n`))
      }),
    async act(host) {
      for (const index of list(6, at => at)) {
        const headers = { 'x-case': `${index}` }
        await host.refused(host.connect({ revisions: ['2025-11-25'], headers }), 'protocol', 'lost', 'too-large')
      }
      return '6 refused'
    },
  },
  {
    key: 'H29',
    name: 'a tool whose mirrored arguments would inject headers is hidden and named, and the others stay',
    serve: () => {
      let injected = 0
      const marked = (name: string) => ({ type: 'object', properties: { region: { type: 'string', 'x-mcp-header': name } } })
      const names = ['X\r\nInjected: yes', 'a b', '', 'ä', 'x:y', 'x'.repeat(100_000)]
      return httpPeer(
        {
          'tools/list': ({ answer }) =>
            answer({
              tools: [
                ...names.map((name, index) => ({ name: `bad${index}`, inputSchema: marked(name) })),
                {
                  name: 'twice',
                  inputSchema: {
                    type: 'object',
                    properties: { ...marked('a').properties, other: { type: 'string', 'x-mcp-header': 'A' } },
                  },
                },
                { name: 'good', inputSchema: marked('Region') },
              ],
            }),
          'tools/call': ({ request, answer }) => {
            if (request.headers['injected'] !== undefined) injected++
            answer(said(String(request.headers['mcp-param-region'])))
          },
        },
        () => (injected === 0 ? undefined : 'a header was injected'),
      )
    },
    async act(host) {
      const mcp = await host.connect()
      const names: string[] = []
      for await (const { name } of mcp.tools()) names.push(name)
      must(!names.some(name => /^bad[0-4]|twice/.test(name)), `shown: ${names.join()}`)
      must(names.includes('good') && host.traced.said('bad0'), `shown: ${names.join()}`)
      const { text } = await mcp.callTool('good', { region: 'eu\r\nInjected: yes' })
      must(text !== 'undefined', 'the header was not sent')
      await host.fine(mcp)
      return `${names.length} shown`
    },
  },
  {
    key: 'H30',
    name: 'a socket that is closed half-way through an answer fails the call at once',
    serve: () =>
      socketPeer((socket, request) => {
        if (request.includes('"fine"')) return void socket.end(rawAnswer(request, said('fine')))
        if (request.includes('server/discover')) return void socket.end(rawAnswer(request, discovery))
        const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'
        if (request.includes('"length"')) socket.end(`${head}content-length: 500\r\n\r\n{"jsonrpc":"2.0"`)
        else if (request.includes('"chunk"')) socket.end(`${head}transfer-encoding: chunked\r\n\r\nff\r\n{"jsonrpc":"2.0"`)
        else socket.end(`${head.replace('json', 'jso')}`)
      }),
    async act(host) {
      const mcp = await host.connect()
      for (const name of ['length', 'chunk', 'head']) await host.refused(mcp.callTool(name), 'lost', 'protocol')
      await host.fine(mcp)
      return '3 refused'
    },
  },
  {
    key: 'H31',
    name: 'an answer of one byte a second ends with the deadline of the call',
    serve: () =>
      httpPeer({
        'tools/call': ({ response }) => {
          response.writeHead(200, { 'content-type': 'application/json' })
          const drip = setInterval(() => response.write(' '), 1_000)
          response.on('close', () => clearInterval(drip))
        },
      }),
    async act(host) {
      const mcp = await host.connect()
      const kind = await host.refused(mcp.callTool('t', {}, { timeout: '2500ms' }), 'timeout')
      await host.fine(mcp)
      return kind
    },
  },
  {
    key: 'H53',
    name: '200,000 pings on a stream, whose answers the server never takes, do not pile up',
    serve: () =>
      httpPeer(
        sessionPeer({
          GET: ({ response }) => {
            events(response)
            const pings = list(1_000, index => `data: {"jsonrpc":"2.0","id":"p${index}","method":"ping"}\n\n`).join('')
            pour(response, pings, 200 * pings.length)
          },
          POST: () => {},
          DELETE: ({ response }) => void response.end(),
        }),
      ),
    async act(host) {
      await host.connect({ revisions: ['2025-11-25'] })
      await pause(3_000)
      must(host.traced.count('send-failed') > 5_000, `traced: ${host.traced}`)
      return `traced: ${host.traced}`
    },
  },
  {
    key: 'H32',
    name: 'garbage after an answer costs neither that answer nor the next',
    serve: () =>
      httpPeer({
        'tools/call': ({ id, params, response }) => {
          const right = `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(said('right'))}}`
          if (params['name'] === 'json') return json(response, 200, `${right}{"jsonrpc":"2.0","id":${id},"result":`)
          events(response).write(`data: ${right}\n\n`)
          pour(
            response,
            `data: {"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(said('wrong'))}}\n\nnonsense\u0000\n\n`,
            64 * 1024 * 1024,
          )
        },
      }),
    async act(host) {
      const mcp = await host.connect()
      must((await mcp.callTool('events')).text === 'right', 'another answer')
      await host.refused(mcp.callTool('json'), 'invalid-result', 'protocol')
      await pause(1_200)
      await host.fine(mcp)
      return 'the first answer counts'
    },
  },
]

const discovery = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  ttlMs: 0,
  cacheScope: 'private',
}

/** An honest answer written by hand. */
function rawAnswer(request: string, result: object, headers = ''): string {
  const id = /"id":(\d+)/.exec(request)?.[1]
  const body = `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`
}
