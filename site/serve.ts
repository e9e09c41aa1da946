/** Serves a built site on loopback: `guide/server` is `guide/server.html`, as hosts of static sites do it. */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize, sep } from 'node:path'
import { gzipSync } from 'node:zlib'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.webp': 'image/webp',
}

export interface Serving {
  readonly url: string
  /** Bytes that each address took on the wire, until somebody clears it. */
  readonly sent: Map<string, number>
  close(): Promise<void>
}

export async function serveSite(folder: string, port = 0): Promise<Serving> {
  const sent = new Map<string, number>()
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://site').pathname)
    const found = await find(folder, path)
    if (found === undefined)
      return void response.writeHead(404, { 'content-type': 'text/html; charset=utf-8' }).end(await notFound(folder))
    const packed = found.type === 'font/woff2' || found.type === 'image/webp' ? found.bytes : gzipSync(found.bytes)
    sent.set(path, packed.length)
    const encoding = packed === found.bytes ? {} : { 'content-encoding': 'gzip' }
    response
      .writeHead(200, { 'content-type': found.type, 'content-length': packed.length, 'cache-control': 'no-cache', ...encoding })
      .end(packed)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    sent,
    close: () => new Promise(resolve => void server.close(() => resolve()).closeAllConnections()),
  }
}

async function find(folder: string, path: string): Promise<{ bytes: Buffer; type: string } | undefined> {
  const file = normalize(join(folder, path))
  if (
    file !== normalize(folder) &&
    !file.startsWith(normalize(folder + sep)) &&
    !`${file}${sep}`.startsWith(normalize(folder + sep))
  )
    return undefined
  for (const candidate of path.endsWith('/') ? [join(file, 'index.html')] : [`${file}.html`, file]) {
    try {
      return { bytes: await readFile(candidate), type: TYPES[extname(candidate)] ?? 'application/octet-stream' }
    } catch {
      // The next candidate, or not found.
    }
  }
  return undefined
}

const notFound = async (folder: string): Promise<Buffer> => readFile(join(folder, '404.html'))
