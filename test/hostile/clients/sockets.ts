/** W: WebSocket frames against the rules of RFC 6455, and floods within them. */
import type { Verdict } from '../case.ts'
import { type Arena, type Attack, badly, judge, resultOf, textOf, well } from './attack.ts'
import { type SocketPeer, upgradeLines, upgradeText } from './peer.ts'
import { fire, Line } from './raw.ts'
import { growth, mebibyte, mebibytes } from './watch.ts'
import { call, hello } from './wire.ts'
import { opcodes, wsFrame } from './ws-frames.ts'

/** A client of its own, its handshake made, for frames by hand. */
async function withSocket(arena: Arena, work: (peer: SocketPeer) => Promise<Verdict>): Promise<Verdict> {
  const peer = (await arena.peer()) as SocketPeer
  try {
    return await work(peer)
  } finally {
    peer.close()
  }
}

/** Bytes after which the server must take leave with one of these codes, or just close. */
async function ends(arena: Arena, data: Buffer, codes: readonly number[]): Promise<Verdict> {
  return withSocket(arena, async peer => {
    peer.line.write(data)
    const ended = await peer.line.ended(4_000)
    const code = peer.sendShutdown()
    return judge(
      (ended || code !== undefined) && (code === undefined || codes.includes(code)),
      code === undefined ? (ended ? 'closed' : 'still open') : `${code}`,
    )
  })
}

async function allEnd(arena: Arena, frames: readonly Buffer[], codes: readonly number[]): Promise<Verdict> {
  let last = well('')
  for (const data of frames) {
    last = await ends(arena, data, codes)
    if (!last.well) return last
  }
  return last
}

const text = (arena: Arena, said = 'a') => JSON.stringify(call(arena.era, 'echo', { text: said }, 'w'))

/** Frames after which the answer to a call must still come. */
async function serves(arena: Arena, frames: (call: Buffer) => readonly Buffer[], said = 'a'): Promise<Verdict> {
  return withSocket(arena, async peer => {
    for (const data of frames(Buffer.from(text(arena, said)))) peer.line.write(data)
    await peer.line.until(() => peer.heard().some(frame => frame['id'] === 'w'))
    const heard = { status: 0, headers: new Map(), frames: peer.heard(), text: '', closed: peer.line.closed }
    return judge(textOf(resultOf(heard, 'w')) === said, peer.line.closed ? 'closed' : 'served')
  })
}

const { continuation, binary, close, pong } = opcodes
const protocol = [1002]

const shapes: readonly Attack[] = [
  {
    key: 'W01',
    name: 'opcodes that are reserved (3–7, 11–15): 1002',
    run: arena =>
      allEnd(
        arena,
        [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map(code => wsFrame(code, 'a')),
        protocol,
      ),
  },
  {
    key: 'W02',
    name: 'reserved bits without an extension, compression among them: 1002',
    run: arena =>
      allEnd(
        arena,
        [0x40, 0x20, 0x10, 0x70].map(reserved => wsFrame(opcodes.text, text(arena), { reserved })),
        protocol,
      ),
  },
  {
    key: 'W03',
    name: 'a frame that is not masked: 1002',
    run: arena => ends(arena, wsFrame(opcodes.text, text(arena), { masked: false }), protocol),
  },
  { key: 'W04', name: 'a continuation of nothing: 1002', run: arena => ends(arena, wsFrame(continuation, 'a'), protocol) },
  {
    key: 'W05',
    name: 'a new message inside an unfinished one: 1002',
    run: arena => ends(arena, Buffer.concat([wsFrame(opcodes.text, 'a', { fin: false }), wsFrame(opcodes.text, 'b')]), protocol),
  },
  {
    key: 'W06',
    name: 'a ping in fragments: 1002',
    run: arena => ends(arena, wsFrame(opcodes.ping, 'a', { fin: false }), protocol),
  },
  { key: 'W07', name: 'a ping of 126 bytes: 1002', run: arena => ends(arena, wsFrame(opcodes.ping, 'x'.repeat(126)), protocol) },
  {
    key: 'W08',
    name: 'farewells with codes that are none: 1002',
    run: arena =>
      allEnd(
        arena,
        [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535].map(code =>
          wsFrame(close, Buffer.from([code >> 8, code & 255])),
        ),
        protocol,
      ),
  },
  {
    key: 'W09',
    name: 'a farewell of one byte, or whose reason is not UTF-8: 1002 or 1007',
    run: arena =>
      allEnd(arena, [wsFrame(close, Buffer.from([3])), wsFrame(close, Buffer.from([3, 0xe8, 0xff, 0xfe]))], [1002, 1007]),
  },
  {
    key: 'W10',
    name: 'a length with its highest bit set, and one of 2^62: 1002 or 1009',
    run: arena =>
      allEnd(
        arena,
        [2n ** 63n + 5n, 2n ** 62n].map(claims => wsFrame(opcodes.text, 'a', { claims })),
        [1002, 1009],
      ),
  },
]

const texts: readonly Attack[] = [
  {
    key: 'W11',
    name: 'text that is not UTF-8: 1007, and no tool runs',
    run: arena =>
      allEnd(
        arena,
        [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]].map(bytes =>
          wsFrame(opcodes.text, Buffer.from(bytes)),
        ),
        [1007],
      ),
  },
  {
    key: 'W12',
    name: 'text that is not UTF-8 across fragments: 1007',
    run: arena =>
      ends(
        arena,
        Buffer.concat([
          wsFrame(opcodes.text, Buffer.from([0xe6, 0xbc]), { fin: false }),
          wsFrame(continuation, Buffer.from([0xff])),
        ]),
        [1007],
      ),
  },
  {
    key: 'W13',
    name: 'a character cut by fragments: joined, and served',
    run: arena =>
      serves(
        arena,
        data => {
          const cut = data.indexOf('漢') + 1
          return [wsFrame(opcodes.text, data.subarray(0, cut), { fin: false }), wsFrame(continuation, data.subarray(cut))]
        },
        '漢',
      ),
  },
  {
    key: 'W14',
    name: 'a message in single bytes, pings between them: served',
    run: arena =>
      serves(arena, data =>
        [...data].map((_, at) =>
          Buffer.concat([
            wsFrame(at === 0 ? opcodes.text : continuation, data.subarray(at, at + 1), { fin: at === data.length - 1 }),
            at % 7 === 0 ? wsFrame(opcodes.ping, 'p') : Buffer.alloc(0),
          ]),
        ),
      ),
  },
  {
    key: 'W15',
    name: 'a binary message: refused in words, and the next one is served',
    run: arena => serves(arena, data => [wsFrame(binary, data), wsFrame(opcodes.text, data)]),
  },
  {
    key: 'W16',
    name: 'unasked pongs: passed over',
    run: arena => serves(arena, data => [...Array.from({ length: 500 }, () => wsFrame(pong, 'x')), wsFrame(opcodes.text, data)]),
  },
]

/** Sends the same bytes over and over without reading, and tells how much the server grew. */
async function floods(arena: Arena, piece: Buffer, pieces: number): Promise<Verdict> {
  return withSocket(arena, async peer => {
    const { grown } = await growth(arena.target, async () => {
      peer.line.socket.pause()
      let room = true
      peer.line.socket.on('drain', () => {
        room = true
      })
      const end = performance.now() + 4_000
      for (let at = 0; at < pieces && performance.now() < end && !peer.line.closed; ) {
        if (room) {
          room = peer.line.write(piece)
          at++
        } else await new Promise(done => setTimeout(done, 2))
      }
      await arena.target.facts(true)
    })
    return judge(
      grown.used <= 8 * mebibyte && grown.peak <= 48 * mebibyte,
      `+${mebibytes(grown.used)} (resident +${mebibytes(grown.peak)})`,
    )
  })
}

const sizes: readonly Attack[] = [
  {
    key: 'W17',
    name: 'a message that says it has 64 MiB: 1009 before it comes',
    memory: 16,
    run: arena => ends(arena, wsFrame(opcodes.text, 'a', { claims: BigInt(64 * mebibyte) }), [1009]),
  },
  {
    key: 'W18',
    name: 'fragments without end, 64 MiB of them: 1009 once it is too long',
    memory: 48,
    run: arena =>
      ends(
        arena,
        Buffer.concat([
          wsFrame(opcodes.text, 'a', { fin: false }),
          ...Array.from({ length: 100 }, () => wsFrame(continuation, 'x'.repeat(65_536), { fin: false })),
        ]),
        [1009],
      ),
  },
  {
    key: 'W19',
    name: 'a hundred thousand empty fragments: cut',
    memory: 48,
    run: arena =>
      ends(
        arena,
        Buffer.concat([
          wsFrame(opcodes.text, '', { fin: false }),
          ...Array.from({ length: 100_000 }, () => wsFrame(continuation, '', { fin: false })),
        ]),
        [1002, 1008, 1009],
      ),
  },
  {
    key: 'W20',
    name: 'a flood of pings whose pongs nobody reads: bounded',
    run: arena => floods(arena, Buffer.concat(Array.from({ length: 1_000 }, () => wsFrame(opcodes.ping, 'x'.repeat(125)))), 400),
  },
  {
    key: 'W21',
    name: 'a flood of calls whose answers nobody reads: nothing more is taken in',
    run: arena =>
      floods(arena, Buffer.concat(Array.from({ length: 100 }, () => wsFrame(opcodes.text, text(arena, 'x'.repeat(4_000))))), 200),
  },
]

const upgrades: readonly Attack[] = [
  {
    key: 'W22',
    name: 'compression on offer: not agreed to',
    run: async arena => {
      const line = new Line(arena.port)
      line.write(upgradeText([...upgradeLines, 'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits']))
      await line.until(said => said.includes('\r\n\r\n'))
      line.end()
      return judge(line.text.startsWith('HTTP/1.1 101') && !/sec-websocket-extensions/i.test(line.text), 'none')
    },
  },
  {
    key: 'W23',
    name: 'upgrades that are none (version 7, no key, a short key, a POST, another path, another subprotocol): 4xx',
    run: async arena => {
      const without = (name: string) => upgradeLines.filter(line => !line.startsWith(name))
      const bad = [
        upgradeText([...without('Sec-WebSocket-Version'), 'Sec-WebSocket-Version: 7']),
        upgradeText(without('Sec-WebSocket-Key')),
        upgradeText([...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key: short']),
        upgradeText().replace('GET', 'POST'),
        upgradeText().replace('/ws', '/mcp'),
        upgradeText([...upgradeLines, 'Sec-WebSocket-Protocol: graphql-ws']),
        upgradeText([...without('Upgrade'), 'Upgrade: h2c']),
      ]
      for (const data of bad) {
        const { status } = await fire(arena.port, data, 3_000)
        if (status < 400 || status >= 500)
          return badly(`${status || 'no answer'} for ${data.split('\r\n').slice(2).join(' | ').slice(0, 100)}`)
      }
      return well('4xx')
    },
  },
  {
    key: 'W24',
    name: 'frames right behind the upgrade, before it is answered: served',
    run: async arena => {
      const line = new Line(arena.port)
      line.write(Buffer.concat([Buffer.from(upgradeText()), wsFrame(opcodes.text, JSON.stringify(hello(arena.era)))]))
      const served = await line.until(said => said.includes('protocolVersion'))
      line.end()
      return judge(served, 'served')
    },
  },
  {
    key: 'W25',
    name: 'two hundred sockets that are torn down in the middle of a frame: nothing happens',
    run: async arena => {
      const lines = await Promise.all(Array.from({ length: 200 }, () => new Line(arena.port).opened()))
      for (const line of lines) line.write(upgradeText())
      await Promise.all(lines.map(line => line.until(said => said.includes('\r\n\r\n'))))
      for (const [at, line] of lines.entries()) {
        line.write(wsFrame(opcodes.text, text(arena)).subarray(0, (at % 60) + 1))
        at % 2 === 0 ? line.reset() : line.end()
      }
      return well('gone')
    },
  },
]

export const socketAttacks: readonly Attack[] = [...shapes, ...texts, ...sizes, ...upgrades]
