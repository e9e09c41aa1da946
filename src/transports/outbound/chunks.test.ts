import { createHash, randomBytes } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { guard, publicServer } from '../../../test/transports/outbound-servers.ts'
import { releaseBuffer } from '../../stores/blobs.ts'

const piece = randomBytes(65_536)
const MiB = 1024 ** 2

/** Sends the same piece again and again. */
function sending(pieces: number, head: Record<string, string>): RequestListener {
  return (_, response) => {
    response.writeHead(200, head)
    let sent = 0
    const next = (): void => void (sent++ < pieces ? response.write(piece, next) : response.end())
    next()
  }
}

function digestOf(pieces: number): string {
  const hash = createHash('sha256')
  for (let at = 0; at < pieces; at++) hash.update(piece)
  return hash.digest('hex')
}

const servers: Record<string, (listener: RequestListener) => Promise<string>> = {
  https: async listener => (await publicServer(listener)).url,
  http: async listener => {
    const server = createServer(listener)
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  },
}

it.each([
  ['https', 'by its length'],
  ['https', 'in chunks'],
  ['http', 'by its length'],
  ['http', 'in chunks'],
])('a long body over %s, %s, is what was sent, however slowly it is read', async (scheme, framing) => {
  const pieces = 200
  const head = framing === 'in chunks' ? {} : { 'content-length': `${pieces * piece.length}` }
  const url = await servers[scheme]?.(sending(pieces, head))
  const answer = await guard({ loopback: true, stream: true, maxBytes: Number.POSITIVE_INFINITY })(url ?? '')
  const hash = createHash('sha256')
  let count = 0
  for await (const chunk of answer.body ?? []) {
    if (count++ % 7 === 0) await new Promise(setImmediate)
    hash.update(chunk)
    // Whoever has it may do with it what he likes.
    releaseBuffer(chunk)
  }
  expect(hash.digest('hex')).toBe(digestOf(pieces))
})

it('chunks stay what they are for whoever keeps them', async () => {
  const url = await servers['http']?.(sending(50, {}))
  const answer = await guard({ loopback: true, stream: true, maxBytes: Number.POSITIVE_INFINITY })(url ?? '')
  const kept = []
  for await (const chunk of answer.body ?? []) kept.push(chunk)
  expect(createHash('sha256').update(Buffer.concat(kept)).digest('hex')).toBe(digestOf(50))
})

it('a body of any length needs no more memory than a short one, where its reader gives back what it has read', async () => {
  const pieces = 3_000
  const url = await servers['http']?.(sending(pieces, { 'content-length': `${pieces * piece.length}` }))
  const answer = await guard({ loopback: true, stream: true, maxBytes: Number.POSITIVE_INFINITY })(url ?? '')
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  for await (const chunk of answer.body ?? []) {
    releaseBuffer(chunk)
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  }
  expect(most).toBeLessThan(16 * MiB)
})
