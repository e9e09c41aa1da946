/** For tests of imports: somebody else's server with one content, by parts, which can be told to stop in the middle of it. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { DataReference } from '../../src/server/index.ts'

export interface Source {
  readonly origin: string
  readonly reference: DataReference
  /** What it was asked for: `Range`, and `If-Range` where there was one. */
  readonly asked: [range: string | undefined, ifRange: string | undefined][]
  /** Answers stop, and are held, when so much of the content was sent. */
  stopAt: number
  etag: string | undefined
  /** Whether it knows parts. */
  ranges: boolean
  /** Other bytes than were announced. */
  data: Uint8Array
  /** Finishes the answers that were held, by the order in which they were asked for. */
  readonly held: (() => void)[]
  close(): void
}

export async function sourceOf(data: Uint8Array): Promise<Source> {
  const http = createServer((req, res) => {
    const { range, 'if-range': ifRange } = req.headers
    source.asked.push([range, typeof ifRange === 'string' ? ifRange : undefined])
    const same = source.ranges && (ifRange === undefined || ifRange === source.etag)
    const start = same ? Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0) : 0
    const { length } = source.data
    res.writeHead(start === 0 ? 200 : 206, {
      'content-length': length - start,
      ...(source.etag === undefined ? {} : { etag: source.etag }),
      ...(start === 0 ? {} : { 'content-range': `bytes ${start}-${length - 1}/${length}` }),
    })
    if (source.stopAt > length) res.end(source.data.subarray(start))
    else {
      const stop = Math.max(start, source.stopAt)
      source.held.push(() => res.end(source.data.subarray(stop)))
      res.write(source.data.subarray(start, stop))
    }
  })
  await new Promise<void>(done => http.listen(0, '127.0.0.1', done))
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const source: Source = {
    origin,
    reference: {
      ref_id: 'r',
      origin_server: 'elsewhere',
      mime_type: 'application/octet-stream',
      size_bytes: data.length,
      access_url: `${origin}/r`,
      checksum: { algorithm: 'sha256', value: createHash('sha256').update(data).digest('hex') },
    },
    asked: [],
    held: [],
    stopAt: Number.POSITIVE_INFINITY,
    etag: '"one"',
    ranges: true,
    data,
    close: () => {
      http.closeAllConnections()
      http.close()
    },
  }
  return source
}
