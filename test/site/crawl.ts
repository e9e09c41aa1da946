/** What a built site holds, read from its files: pages, links, anchors. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

export interface BuiltPage {
  /** As a reader's browser shows it: `/guide/server`. */
  readonly address: string
  readonly html: string
  readonly anchors: ReadonlySet<string>
  /** Whole addresses, with anchors. */
  readonly links: readonly string[]
  /** Links of the list of pages beside the text. */
  readonly sidebar: readonly string[]
}

export interface BuiltSite {
  readonly pages: ReadonlyMap<string, BuiltPage>
  /** Every file by its address. */
  readonly files: ReadonlySet<string>
}

export function readSite(folder: string): BuiltSite {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => `/${relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/')}`)
  const pages = files.filter(file => file.endsWith('.html')).map(file => readPage(folder, file))
  return { pages: new Map(pages.map(page => [page.address, page])), files: new Set(files) }
}

function readPage(folder: string, file: string): BuiltPage {
  const html = readFileSync(join(folder, file), 'utf8')
  const address = file.replace(/(index)?\.html$/, '')
  const linksIn = (part: string) =>
    [...part.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, link = '']) => whole(address, link.replaceAll('&amp;', '&')))
  return {
    address,
    html,
    anchors: new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)),
    links: linksIn(html),
    sidebar: linksIn(/<nav id="pages"[\s\S]*?<\/nav>/.exec(html)?.[0] ?? ''),
  }
}

const origin = 'http://site'

function whole(address: string, link: string): string {
  const url = new URL(link, origin + address)
  return url.origin === origin ? decodeURIComponent(url.pathname + url.hash) : url.href
}

/** Links of the site that lead to no file, or to no such place in it. */
export function findDeadLinks({ pages, files }: BuiltSite): string[] {
  return [...pages.values()].flatMap(({ address, links }) =>
    links
      .filter(link => {
        if (!link.startsWith('/')) return false
        const [path = '', anchor] = link.split('#')
        const page = pages.get(path)
        return page === undefined ? !files.has(path) : anchor !== undefined && anchor !== '' && !page.anchors.has(anchor)
      })
      .map(link => `${address}: ${link}`),
  )
}
