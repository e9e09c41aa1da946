/** The site for programs that read: every page as Markdown at its address with `.md`, llms.txt and llms-full.txt. */
import { writeFull, writeIndex } from '../scripts/check-llms.ts'
import { twinOf } from './layout.ts'
import { type Links, relative } from './links.ts'
import type { Page } from './pages.ts'

/** The Markdown of a page, with links to the Markdown of others. */
export function twinText(page: Page, links: Links): string {
  return page.text.replace(/(```|~~~)[\s\S]*?^\1|`[^`\n]+`|\]\(([^)\s]+)\)/gm, (whole, _fence, link: string | undefined) => {
    const target = link === undefined ? undefined : links.resolve(page.path, link)
    if (target === undefined) return whole
    const [address = '', anchor] = target.split('#')
    const own = twinOf(page.address)
    return `](${address === page.address ? '' : relative(own, twinOf(address))}${anchor === undefined ? '' : `#${anchor}`})`
  })
}

/** What the index of the package says, with the addresses of the site; generated pages are in it too. */
export function llmsFiles(pages: readonly Page[], links: Links, summary: string): Readonly<Record<string, string>> {
  const listed = pages.filter(({ path }) => /^(README\.md|docs\/.*\.md)$/.test(path))
  const byPath = new Map(listed.map(page => [page.path, page]))
  const index = writeIndex(listed, summary).replace(/\]\(((?:README|docs\/)[^)]*)\)/g, (whole, path: string) => {
    const page = byPath.get(path)
    return page === undefined ? whole : `](${twinOf(page.address)})`
  })
  const rooted = listed.map(page => ({ path: page.path, text: rootedText(page, links) }))
  return { 'llms.txt': index, 'llms-full.txt': writeFull(rooted, summary) }
}

/** Links from the root of the site, which `writeFull` leaves as they are. */
function rootedText(page: Page, links: Links): string {
  return twinText(page, links).replace(/\]\((?![a-z][a-z+.-]*:|#|\/)([^)\s]+)\)/gi, (_, link: string) => {
    const { pathname, hash } = new URL(link, `http://site/${twinOf(page.address)}`)
    return `](${pathname}${hash})`
  })
}
