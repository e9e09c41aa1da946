/** The page: static files that were built beforehand, each perhaps compressed. Only what was found at the start is ever served. */
import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newNonce, noncePlaceholder, securityHeaders } from './headers.ts'

/** An answer with a file. */
export interface FileAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const types: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png'],
  ['.woff2', 'font/woff2'],
  ['.json', 'application/json'],
  ['.webmanifest', 'application/manifest+json'],
])

const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/** Addresses of screens, which all are the one page. */
const screenPath =
  /^\/(?:overview|playground|traffic|conformance|chat|inbox|approvals|state|explain|audit|rules|clients|logs)(?:\/|$)/
/** Names that change with their content. */
const hashed = /[-.][\w-]{8,}\.\w+$/
const index = '/index.html'

/** Where the build puts the page, seen from the source and from the bundle. */
const places = ['../../dist/console/', './console/', '../console/'].map(path => fileURLToPath(new URL(path, import.meta.url)))

/** The files of a folder, by the path under which they are served. */
export class PageFiles {
  readonly #files = new Map<string, string>()

  constructor(folder = places.find(each => existsSync(join(each, 'index.html')))) {
    if (folder === undefined || !existsSync(folder)) return
    for (const each of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!each.isFile() || each.name.startsWith('.')) continue
      const path = join(each.parentPath, each.name)
      this.#files.set(`/${relative(folder, path).split(sep).join('/')}`, path)
    }
  }

  /** The answer to a GET; undefined where there is no such file. Paths of screens get the page itself. */
  async answer(path: string, accepts: string): Promise<FileAnswer | undefined> {
    const name = path === '/' || screenPath.test(path) ? index : path
    if (name === index) return this.#page()
    const type = types.get(extname(name))
    const plain = this.#files.get(name)
    if (type === undefined || plain === undefined) return undefined
    const accepted = new Set(accepts.split(',').map(each => each.split(';', 1)[0]?.trim()))
    const packed = encodings.find(([encoding, end]) => accepted.has(encoding) && this.#files.has(name + end))
    const body = await readFile(packed === undefined ? plain : (this.#files.get(name + packed[1]) as string))
    const headers = {
      ...securityHeaders(newNonce()),
      'content-type': type,
      'cache-control': hashed.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
      vary: 'accept-encoding',
      ...(packed !== undefined && { 'content-encoding': packed[0] }),
    }
    return { status: 200, headers, body }
  }

  /** The page holds a nonce of its own each time, so it is neither compressed beforehand nor stored. */
  async #page(): Promise<FileAnswer> {
    const file = this.#files.get(index)
    const nonce = newNonce()
    const headers = { ...securityHeaders(nonce), 'cache-control': 'no-store' }
    if (file === undefined) {
      const body = Buffer.from('The page of the console is not part of this installation. Build it: npm run build\n')
      return { status: 404, headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' }, body }
    }
    const text = (await readFile(file, 'utf8')).replaceAll(noncePlaceholder, nonce)
    return { status: 200, headers: { ...headers, 'content-type': 'text/html; charset=utf-8' }, body: Buffer.from(text) }
  }
}
