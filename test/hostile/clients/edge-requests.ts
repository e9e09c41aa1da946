/** A: what a browser, a proxy or a liar sends in the head of a request. */
import { gzipSync } from 'node:zlib'
import { type Attack, badly, judge } from './attack.ts'
import { allTurnedAway, echoBody, said, shot, turnedAway } from './edge-shot.ts'
import { upgradeLines, upgradeText } from './peer.ts'
import { fire, Line, parseAnswer } from './raw.ts'

const type = (value: string) => ({ without: ['content-type'], lines: [`Content-Type: ${value}`] })

export const contentAttacks: readonly Attack[] = [
  {
    key: 'A04',
    name: 'a page posts text/plain, which needs no preflight: 415',
    run: arena => turnedAway(arena, shot(arena, type('text/plain')), [415]),
  },
  {
    key: 'A05',
    name: 'a form posts application/x-www-form-urlencoded: 415',
    run: arena => turnedAway(arena, shot(arena, type('application/x-www-form-urlencoded')), [415]),
  },
  {
    key: 'A06',
    name: 'a form posts multipart/form-data with a boundary called application/json: 415',
    run: arena => turnedAway(arena, shot(arena, type('multipart/form-data; boundary=application/json')), [415]),
  },
  {
    key: 'A07',
    name: 'a body without a Content-Type: 415',
    run: arena => turnedAway(arena, shot(arena, { without: ['content-type'] }), [415]),
  },
  {
    key: 'A20',
    name: 'a compressed body that would unfold to 64 MiB: 415',
    memory: 32,
    run: arena => {
      const body = gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20))
      return turnedAway(arena, shot(arena, { body, lines: ['Content-Encoding: gzip'] }), [415])
    },
  },
  {
    key: 'A31',
    name: 'types that merely contain application/json: 415',
    run: arena => {
      const types = ['text/plain; application/json', 'text/plain, application/json', 'application/jsonp', 'xapplication/json']
      return allTurnedAway(
        arena,
        types.map(value => shot(arena, type(value))),
        [415],
      )
    },
  },
]

const origin = (value: string) => ({ lines: [`Origin: ${value}`] })

export const namesAttacks: readonly Attack[] = [
  {
    key: 'A08',
    name: 'a page of another origin calls: 403',
    run: arena => turnedAway(arena, shot(arena, origin('https://evil.example')), [403]),
  },
  {
    key: 'A09',
    name: 'a sandboxed page calls with Origin null: 403',
    run: arena => turnedAway(arena, shot(arena, origin('null')), [403]),
  },
  {
    key: 'A10',
    name: 'origins that look like loopback: 403',
    run: arena => {
      const lookalikes = [
        'http://localhost.evil.example',
        'http://127.0.0.1.evil.example',
        'http://localhost:80@evil.example',
        'http://evil.example/?localhost',
        'http://[::1].evil.example',
        'file://localhost',
        'http://127.0.0.1, http://evil.example',
      ]
      return allTurnedAway(
        arena,
        lookalikes.map(value => shot(arena, origin(value))),
        [403],
      )
    },
  },
  {
    key: 'A11',
    name: 'a name of the attacker that resolves to loopback (DNS rebinding): 403',
    run: arena => turnedAway(arena, shot(arena, { host: 'Host: evil.example:80' }), [403]),
  },
  {
    key: 'A12',
    name: 'hosts that look like loopback, or like nothing: 403 or 400',
    run: arena => {
      const hosts = [
        'localhost.evil.example',
        '127.0.0.1.evil.example',
        'localhost@evil.example',
        '[::1',
        'localhost:99999999',
        '',
      ]
      return allTurnedAway(
        arena,
        hosts.map(value => shot(arena, { host: `Host: ${value}` })),
        [400, 403],
      )
    },
  },
  {
    key: 'A13',
    name: 'two Host headers: 400',
    run: arena => {
      const pairs = [
        'Host: 127.0.0.1\r\nHost: evil.example',
        'Host: evil.example\r\nhost: 127.0.0.1',
        'Host: 127.0.0.1\r\nHOST: 127.0.0.1',
      ]
      return allTurnedAway(
        arena,
        pairs.map(host => shot(arena, { host })),
        [400],
      )
    },
  },
  {
    key: 'A19',
    name: 'the preflight of a foreign page: no permission',
    run: async arena => {
      const text = `OPTIONS ${arena.home.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n`
      const answer = await fire(arena.port, text)
      return judge(!answer.headers.has('access-control-allow-origin') && answer.status >= 400, said(answer))
    },
  },
  {
    key: 'A29',
    name: 'HTTP/1.0 or 1.1 without a Host: 400',
    run: arena => {
      const bare = shot(arena, { host: '' })
      const old = Buffer.from(bare.toString('latin1').replace('HTTP/1.1', 'HTTP/1.0'), 'latin1')
      return allTurnedAway(arena, [bare, old], [400])
    },
  },
  {
    key: 'A32',
    name: 'a foreign page opens a WebSocket: 403, no upgrade',
    run: async arena => {
      for (const lines of [
        ['Origin: https://evil.example'],
        ['Origin: null'],
        ['Origin: https://evil.example', 'Cookie: session=good'],
      ]) {
        const answer = await fire(arena.port, upgradeText([...upgradeLines, ...lines]))
        if (answer.status !== 403) return badly(`${said(answer)} instead of 403`)
      }
      const rebound = await fire(arena.port, upgradeText(upgradeLines, 'Host: evil.example'))
      return judge(rebound.status === 403, said(rebound))
    },
  },
]

const crlf = '\r\n'

export const smugglingAttacks: readonly Attack[] = [
  {
    key: 'A03',
    name: 'a Content-Length that is no length: 400',
    run: arena => {
      const lengths = ['-1', '12abc', '0x10', '1e3', '99999999999999999999999', '+5', '']
      return allTurnedAway(
        arena,
        lengths.map(value => shot(arena, { length: `Content-Length: ${value}` })),
        [400, 413],
      )
    },
  },
  {
    key: 'A14',
    name: 'Content-Length and Transfer-Encoding together: 400',
    run: arena => {
      const hidden = shot(arena).toString('latin1')
      const lines = ['Transfer-Encoding: chunked']
      return allTurnedAway(
        arena,
        [
          shot(arena, { lines, body: `0${crlf}${crlf}${hidden}`, keepAlive: true }),
          shot(arena, { lines, length: 'Content-Length: 4', body: `0${crlf}${crlf}${hidden}` }),
        ],
        [400],
      )
    },
  },
  {
    key: 'A27',
    name: 'heads that parsers read differently (folding, bare LF, space before the colon, NUL): 400',
    run: arena => {
      const good = shot(arena).toString('latin1')
      const heads = [
        good.replace('Host: 127.0.0.1', 'Host : 127.0.0.1'),
        good.replace('Host: 127.0.0.1\r\n', 'Host: 127.0.0.1\r\n folded: line\r\n'),
        good.replace('Host: 127.0.0.1\r\n', 'Host: 127.0.0.1\n'),
        good.replace('Host: 127.0.0.1', 'Host: 127.0.0.1\0'),
        good.replace('Host: 127.0.0.1', 'Host: 127.0.0.1\r\nX-Bad\x01: 1'),
      ]
      return allTurnedAway(
        arena,
        heads.map(text => Buffer.from(text, 'latin1')),
        [400],
      )
    },
  },
  {
    key: 'A28',
    name: 'another protocol altogether (HTTP/0.9, HTTP/2, TLS, SSH): 400 or closed',
    run: arena => {
      const greetings = [
        'GET /mcp\r\n\r\n',
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        Buffer.from('16030100c8010000c40303', 'hex'),
        'SSH-2.0-OpenSSH_9.9\r\n',
        'POST /mcp HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n',
      ]
      return allTurnedAway(arena, greetings, [0, 400, 505])
    },
  },
  {
    key: 'A30',
    name: 'two lengths, a broken chunk, an encoding that is not chunked: 400',
    run: arena => {
      const body = echoBody(arena)
      const chunked = (text: string) => shot(arena, { length: 'Transfer-Encoding: chunked', body: text })
      const size = Buffer.byteLength(body).toString(16)
      return allTurnedAway(
        arena,
        [
          shot(arena, { lines: ['Content-Length: 5'] }),
          chunked(`${size}x${crlf}${body}${crlf}0${crlf}${crlf}`),
          chunked(`-${size}${crlf}${body}${crlf}0${crlf}${crlf}`),
          chunked(`ffffffffffffffffff${crlf}${body}`),
          chunked(`${size}${crlf}${body}XX0${crlf}${crlf}`),
          shot(arena, { length: 'Transfer-Encoding: chunked, identity', body }),
          shot(arena, { length: 'Transfer-Encoding: xchunked', body }),
        ],
        [400, 413, 501],
      )
    },
  },
  {
    key: 'A26',
    name: 'a hundred requests in one go: answered in their order',
    run: async arena => {
      const line = new Line(arena.port)
      line.write(
        Buffer.concat(Array.from({ length: 100 }, () => shot(arena, { body: echoBody(arena, 'piped'), keepAlive: true }))),
      )
      const count = () => line.text.split(/HTTP\/1\.1 20[02] /).length - 1
      await line.until(() => count() >= 100, 10_000)
      line.end()
      return judge(count() === 100 && parseAnswer(line.text).status < 300, `${count()} answers`)
    },
  },
]
