/** Where a link of a page leads on the site. */
import { existsSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { root } from '../scripts/lib/files.ts'
import { addressOf, sourceAddress } from './pages.ts'
import { SECTIONS } from './structure.ts'

/** From the page at one address to another, so that the site works under any path of any host. */
export function relative(from: string, to: string): string {
  const [path = '', anchor] = to.split('#')
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (path === from) return hash || (path === '' || path.endsWith('/') ? './' : posix.basename(path))
  const folder = from.endsWith('/') || from === '' ? from : `${dirname(from)}/`.replace(/^\.\//, '')
  const way = posix.relative(`/${folder}`, `/${path}`) || '.'
  return `${way}${path.endsWith('/') || path === '' ? '/' : ''}${hash}`.replace(/\/\/$/, '/')
}

export interface Links {
  /** The address and anchor that a link in the file at `path` means; undefined for one that leaves the site. */
  resolve(path: string, link: string): string | undefined
  /** Files and folders of the repository that are linked to and are no pages. */
  readonly sources: ReadonlySet<string>
}

/** Links that lead nowhere end the build. `known` are the paths of generated pages, which are in no folder. */
export function createLinks(known: ReadonlySet<string>): Links {
  const sources = new Set<string>()
  const resolve = (path: string, link: string): string | undefined => {
    if (/^[a-z][a-z+.-]*:/i.test(link) || link.startsWith('//')) return undefined
    const [file = '', anchor] = link.split('#')
    const hash = anchor === undefined ? '' : `#${anchor}`
    const target = (file === '' ? path : posix.join(dirname(path), decodeURI(file))).replace(/\/$/, '')
    const section = SECTIONS.find(({ address }) => `docs/${address}` === `${target}/`)
    if (section !== undefined) return section.address + hash
    const address = addressOf(target)
    if (address !== undefined && (known.has(target) || existsSync(join(root, target)))) return address + hash
    const readme = target.replace(/\/README\.md$/, '')
    if (!existsSync(join(root, readme))) throw new Error(`${path}: the link to ${target} leads nowhere`)
    sources.add(readme)
    return sourceAddress(readme) + hash
  }
  return { resolve, sources }
}
